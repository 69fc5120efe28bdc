// kernel_lives: attaches the sidecar's program between every two steps of the life of each verbs object
// (its device is opened, it is created, it is destroyed, the device is closed), and while processes create and destroy
// objects without a pause. No count may fall below zero, nor exceed what the kernel has. What was there before the
// program is `partial`; all else is exact.
//
// Three processes live alike: one does everything in its first thread, another each step in a thread that ends, which
// hides its objects from netlink, the third every second step, so that netlink lists it with half of what it has. The
// last line is 'N passed, N failed'. Exit status 1 when one failed, 2 without a
// device.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <infiniband/verbs.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/waiting.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

using namespace rdmaquota;

namespace {

int passed = 0, failed = 0;

void check(const std::string& name, const std::string& wrong) {
    ++(wrong.empty() ? passed : failed);
    fmt::print("{}ok - {}\n", wrong.empty() ? "" : "not ", name);
    if (!wrong.empty()) fmt::print("    # {}\n", wrong);
    std::fflush(stdout);
}

struct Objects {
    ibv_context* context;
    ibv_pd* pd;
    ibv_cq* cq;
    ibv_mr *mr, *second_mr;
    ibv_mw* mw;
    ibv_ah* ah;
    ibv_srq* srq;
    ibv_qp* qp;
};

constexpr std::size_t mr_bytes = 4096, second_mr_bytes = 1 << 20;
char memory[second_mr_bytes];

ibv_context* open_device() {
    int count = 0;
    auto** devices = ibv_get_device_list(&count);
    auto* context = count > 0 ? ibv_open_device(devices[0]) : nullptr;
    ibv_free_device_list(devices);
    return context;
}

ibv_ah* create_ah(const Objects& o) {
    ibv_ah_attr attr{};
    attr.is_global = 1;
    attr.port_num = 1;
    attr.grh.hop_limit = 1;
    attr.grh.sgid_index = 1;
    if (ibv_query_gid(o.context, 1, 1, &attr.grh.dgid) != 0) return nullptr;
    return ibv_create_ah(o.pd, &attr);
}

ibv_srq* create_srq(const Objects& o) {
    ibv_srq_init_attr attr{};
    attr.attr = {16, 1, 0};
    return ibv_create_srq(o.pd, &attr);
}

ibv_qp* create_qp(const Objects& o) {
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = o.cq;
    attr.cap = {8, 8, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    return ibv_create_qp(o.pd, &attr);
}

// A step creates what another one destroys; `pair` tells which belong together.
struct Step {
    const char* name;
    int pair;
    Resource resource;
    std::size_t bytes;
    bool (*play)(Objects&);
    bool attach = false;  // a program after it; each attachment takes seconds in the guest
};

const Step steps[] = {
    {"open", 0, Resource::hca_handle, 0, [](Objects& o) { return (o.context = open_device()) != nullptr; }, true},
    {"alloc_pd", 1, Resource::pd, 0, [](Objects& o) { return (o.pd = ibv_alloc_pd(o.context)) != nullptr; }},
    {"create_cq", 2, Resource::cq, 0,
     [](Objects& o) { return (o.cq = ibv_create_cq(o.context, 16, nullptr, nullptr, 0)) != nullptr; }},
    {"reg_mr", 3, Resource::mr, mr_bytes,
     [](Objects& o) { return (o.mr = ibv_reg_mr(o.pd, memory, mr_bytes, IBV_ACCESS_LOCAL_WRITE)) != nullptr; }},
    {"alloc_mw", 4, Resource::mw, 0, [](Objects& o) { return (o.mw = ibv_alloc_mw(o.pd, IBV_MW_TYPE_2)) != nullptr; }},
    {"create_ah", 5, Resource::ah, 0, [](Objects& o) { return (o.ah = create_ah(o)) != nullptr; }},
    {"create_srq", 6, Resource::srq, 0, [](Objects& o) { return (o.srq = create_srq(o)) != nullptr; }},
    {"create_qp", 7, Resource::qp, 0, [](Objects& o) { return (o.qp = create_qp(o)) != nullptr; }, true},
    {"dereg_mr", 3, Resource::mr, mr_bytes, [](Objects& o) { return ibv_dereg_mr(o.mr) == 0; }},
    {"reg_mr again", 8, Resource::mr, second_mr_bytes,
     [](Objects& o) {
         return (o.second_mr = ibv_reg_mr(o.pd, memory, second_mr_bytes, IBV_ACCESS_LOCAL_WRITE)) != nullptr;
     }},
    {"destroy_qp", 7, Resource::qp, 0, [](Objects& o) { return ibv_destroy_qp(o.qp) == 0; }},
    {"destroy_srq", 6, Resource::srq, 0, [](Objects& o) { return ibv_destroy_srq(o.srq) == 0; }, true},
    {"destroy_ah", 5, Resource::ah, 0, [](Objects& o) { return ibv_destroy_ah(o.ah) == 0; }},
    {"dealloc_mw", 4, Resource::mw, 0, [](Objects& o) { return ibv_dealloc_mw(o.mw) == 0; }},
    {"dereg_mr again", 8, Resource::mr, second_mr_bytes, [](Objects& o) { return ibv_dereg_mr(o.second_mr) == 0; }},
    {"destroy_cq", 2, Resource::cq, 0, [](Objects& o) { return ibv_destroy_cq(o.cq) == 0; }},
    {"dealloc_pd", 1, Resource::pd, 0, [](Objects& o) { return ibv_dealloc_pd(o.pd) == 0; }, true},
    {"close", 0, Resource::hca_handle, 0, [](Objects& o) { return ibv_close_device(o.context) == 0; }},
};
constexpr int step_count = static_cast<int>(std::size(steps));

// What those objects are that were created from step `first` on and are alive after `done` steps.
ResourceCounts alive(int first, int done) {
    std::array<int, step_count> created{};
    ResourceCounts counts{};
    created.fill(-1);
    for (int i = 0; i < done; ++i) {
        auto& begin = created[static_cast<std::size_t>(steps[i].pair)];
        begin = begin < 0 ? i : -1;
    }
    for (const int i : created) {
        if (i < first) continue;
        ++counts[index(steps[i].resource)];
        counts[index(Resource::mr_bytes)] += steps[i].bytes;
        if (steps[i].resource != Resource::hca_handle) ++counts[index(Resource::hca_object)];
    }
    return counts;
}

// A process that does one piece of work whenever it is told to.
class Worker {
public:
    explicit Worker(const std::function<bool(char, int)>& work) {
        int ends[2];
        if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0 || (pid_ = fork()) < 0) {
            std::perror("kernel_lives");
            std::exit(2);
        }
        fd_ = ends[pid_ == 0];
        close(ends[pid_ != 0]);
        if (pid_ != 0) return;
        for (char order = 0; read(fd_, &order, 1) == 1;) {
            const char done = work(order, fd_) ? 'y' : 'n';
            if (write(fd_, &done, 1) != 1) break;
        }
        _exit(0);
    }
    Worker(const Worker&) = delete;
    ~Worker() {
        close(fd_);
        waitpid(pid_, nullptr, 0);
    }

    void tell(char order) const {
        if (write(fd_, &order, 1) != 1) std::exit(2);
    }
    bool answered() const {
        char answer = 'n';
        return read(fd_, &answer, 1) == 1 && answer == 'y';
    }
    std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

private:
    pid_t pid_ = -1;
    int fd_ = -1;
};

struct Sight {
    ResourceCounts live{};
    bool known = false, partial = false, stale = false;
    bool missed = false;  // the kernel has skipped the program: nothing is sure but what netlink lists
    std::string wrong;
};

void add(Sight& seen, const KernelUse& use) {
    seen.known = true;
    seen.partial |= use.partial;
    seen.stale |= use.stale;
    for (const auto& row : resource_table) {
        const auto i = index(row.id);
        seen.live[i] += use.live[i];
        if (use.destroyed[i] > use.created[i])
            seen.wrong += fmt::format("{}: {} destroyed of {} created; ", row.name, use.destroyed[i], use.created[i]);
    }
}

using Sights = std::map<std::uint32_t, Sight>;  // by pid

Sights look(KernelWatch& watch) {
    Sights seen;
    watch.poll();  // as the sidecar does, so that there is room for events
    const auto uses = watch.snapshot();
    if (!uses) std::fprintf(stderr, "kernel_lives: %s\n", uses.error().c_str()), std::exit(2);
    for (const auto& use : *uses) add(seen[use.pid], use);
    for (auto& [pid, sight] : seen) sight.missed = watch.missed() != 0;
    return seen;
}

// As `look`, once netlink's figures are of now.
Sights look_afresh(KernelWatch& watch) {
    const auto old = [](const auto& seen) { return seen.second.stale && seen.second.wrong.empty(); };
    auto seen = look(watch);
    eventually([&] {
        if (std::none_of(seen.begin(), seen.end(), old)) return true;
        seen = look(watch);
        return false;
    });
    return seen;
}

// All figures lie between `least`, what the program saw being created, and `most`, what there is. They may differ only
// where the sidecar says so, and not in what netlink lists.
std::string judge(const Sight& seen, ResourceCounts least, const ResourceCounts& most, bool listed, bool all_seen) {
    auto wrong = seen.wrong + (seen.stale ? "netlink's figures stay old; " : "");
    if (seen.missed) least = {};
    if (all_seen && seen.partial && !seen.missed) wrong += "partial, though the program saw all of it; ";
    if (listed)
        for (const auto& row : resource_table)
            if (in_netlink(row.id)) least[index(row.id)] = most[index(row.id)];
    if (least != most && seen.known && !seen.partial && !seen.missed) wrong += "not known to be partial; ";
    for (const auto& row : resource_table) {
        const auto i = index(row.id);
        const auto lowest = seen.partial ? least[i] : most[i];
        if (seen.known && (seen.live[i] < lowest || seen.live[i] > most[i]))
            wrong += fmt::format("{}: {} instead of {} to {}{}; ", row.name, seen.live[i], lowest, most[i],
                                 seen.partial ? " (partial)" : "");
    }
    if (!seen.known && std::any_of(least.begin(), least.end(), [](auto count) { return count != 0; }))
        wrong += "not known at all; ";
    return wrong;
}

bool in_thread(const std::function<bool()>& work) {
    bool done = false;
    std::thread([&] { done = work(); }).join();
    return done;
}

struct Attached {
    KernelWatch watch;
    int after;  // the number of steps; 0: before everything
};

void lives(std::vector<Attached>& programs) {
    Objects objects{};
    const Worker visible([&](char step, int) { return steps[static_cast<int>(step)].play(objects); });
    const Worker hidden(
        [&](char step, int) { return in_thread([&] { return steps[static_cast<int>(step)].play(objects); }); });
    const Worker half_hidden([&](char number, int) {
        const auto play = [&] { return steps[static_cast<int>(number)].play(objects); };
        return number % 2 != 0 ? in_thread(play) : play();
    });
    const std::pair<const char*, const Worker*> workers[] = {
        {"visible", &visible}, {"hidden", &hidden}, {"half hidden", &half_hidden}};
    for (int done = 1; done <= step_count; ++done) {
        const auto& step = steps[done - 1];
        for (const auto& [name, worker] : workers) worker->tell(static_cast<char>(done - 1));
        bool played = true;
        for (const auto& [name, worker] : workers) played &= worker->answered();
        if (!played) return check(step.name, "could not be done");
        if (step.attach) programs.push_back({KernelWatch::open(), done});
        std::string wrong;
        for (auto& [watch, after] : programs) {
            auto seen = look_afresh(watch);
            for (const auto& [name, worker] : workers) {
                const auto why =
                    judge(seen[worker->pid()], alive(after, done), alive(0, done), worker == &visible, after == 0);
                if (why.empty()) continue;
                wrong += fmt::format("{} to the program attached after {}: {}\n    # ", name,
                                     after == 0 ? "nothing" : steps[after - 1].name, why);
            }
        }
        check(fmt::format("after {}", step.name), wrong);
    }
}

// Keeps one PD, and creates and destroys other objects until there is something to read.
bool churn(int order_fd) {
    Objects kept{}, brief{};
    if ((kept.context = open_device()) == nullptr || (kept.pd = ibv_alloc_pd(kept.context)) == nullptr) return false;
    for (int round = 0;; ++round) {
        char order = 0;
        if (recv(order_fd, &order, 1, MSG_DONTWAIT | MSG_PEEK) == 1) return true;
        auto* mr = ibv_reg_mr(kept.pd, memory, mr_bytes, IBV_ACCESS_LOCAL_WRITE);
        auto* mw = ibv_alloc_mw(kept.pd, IBV_MW_TYPE_2);
        if (!mr || !mw || ibv_dereg_mr(mr) != 0 || ibv_dealloc_mw(mw) != 0) return false;
        if (round % 16 != 0) continue;
        if ((brief.context = open_device()) == nullptr || (brief.pd = ibv_alloc_pd(brief.context)) == nullptr)
            return false;
        if (ibv_dealloc_pd(brief.pd) != 0 || ibv_close_device(brief.context) != 0) return false;
    }
}

// Meanwhile figures are not of one instant. One that went below zero is larger than all bounds.
std::string bounded(const Sight& seen) {
    constexpr std::uint64_t bound = 100;
    auto wrong = seen.wrong;
    for (const auto& row : resource_table)
        if (seen.live[index(row.id)] > (row.unit == Unit::bytes ? bound * mr_bytes : bound))
            wrong += fmt::format("{}: {}; ", row.name, seen.live[index(row.id)]);
    return wrong;
}

void attach_while_busy(std::vector<Attached>& programs, int attachments) {
    const auto since = programs.front().watch.since();
    const auto work = [](char order, int fd) { return order == 's' || churn(fd); };
    const Worker workers[] = {Worker(work), Worker(work), Worker(work), Worker(work)};
    for (const auto& worker : workers) worker.tell('c');
    std::string wrong;
    for (int i = 0; i < attachments; ++i) {
        programs.push_back({KernelWatch::open(), 1});
        for (auto& program : programs) {
            auto seen = look(program.watch);
            for (const auto& worker : workers) wrong += bounded(seen[worker.pid()]);
        }
    }
    check("no count falls below zero while objects come and go", wrong);
    wrong.clear();
    for (const auto& worker : workers) worker.tell('s');
    for (const auto& worker : workers)
        if (!worker.answered() || !worker.answered()) wrong += "a process could not create what it should; ";
    ResourceCounts kept{};
    for (const auto resource : {Resource::hca_handle, Resource::pd, Resource::hca_object}) kept[index(resource)] = 1;
    for (auto& program : programs) {
        auto seen = look_afresh(program.watch);
        for (const auto& worker : workers) wrong += judge(seen[worker.pid()], kept, kept, true, program.after == 0);
    }
    check("and all agree with the kernel when they rest", wrong);
    const auto& first = programs.front().watch;
    fmt::print("# the first program missed {} calls{}\n", first.missed(), first.since() == since ? "" : ", and found no room for something");
}

}  // namespace

int main() {
    std::vector<Attached> programs;
    programs.push_back({KernelWatch::open(), 0});
    check("the program attaches", programs.front().watch.attached() ? "" : "it does not");
    lives(programs);
    programs.erase(programs.begin() + 1, programs.end());
    attach_while_busy(programs, 3);
    fmt::print("{} passed, {} failed\n", passed, failed);
    return failed != 0;
}
