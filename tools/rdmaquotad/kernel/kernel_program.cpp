#include "tools/rdmaquotad/kernel/kernel_program.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <fmt/core.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/common/guard/lockdown.hpp"
#include "tools/rdmaquotad/kernel/kernel_functions.hpp"
#include "tools/rdmaquotad/kernel/kernel_hooks.hpp"
#include "tools/rdmaquotad/kernel/kernel_preemption.hpp"
#include "tools/rdmaquotad/kernel/ring_events.hpp"
#include "tools/rdmaquotad/kernel/verifier_words.hpp"

// Generated, in C.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Woverlength-strings"
#include "kernel_counts.skel.h"
#pragma GCC diagnostic pop

namespace rdmaquota {
namespace {

constexpr std::size_t most_events = 4096;  // at once

constexpr const char* skipped_by_preemption =
    "this kernel preempts threads in the kernel (preempt=voluntary on its command line turns that off), and what is never "
    "skipped cannot be used: a process that makes it skip the guard's programs can make more than it may";

std::string reason(int error) { return error == EPERM || error == EACCES ? "not permitted" : std::strerror(error); }

Error no_hook(const Hook& hook, const std::string& why) {
    return {fmt::format("{} cannot be watched by {}: {}", hook.function, hook.by == Hook::By::kprobe ? "kprobe" : "fexit", why)};
}

// Before Linux 6.7 the kernel does not tell how often it skips a program by kprobe or fprobe. This function came with that.
bool counts_skipped_probes(const KernelFunctions& functions) { return functions.has("bpf_iter_task_new"); }

// The kernel numbers the first pid namespace by itself (include/linux/proc_ns.h).
bool in_first_pid_namespace() {
    constexpr ino_t first = 0xEFFFFFFC;
    struct stat space {};
    return stat("/proc/self/ns/pid", &space) == 0 && space.st_ino == first;
}

}  // namespace

struct KernelProgram::Parts {
    kernel_counts* skeleton = nullptr;
    decltype(kernel_counts::bss) memory = nullptr;  // the program's own
    std::vector<ProgramLink> links;
    std::optional<Look> look;  // none: without the guard
    bool fprobes = false;      // in place of kprobes, where the kernel has them: they cost half
    bool tells_misses = true;
    std::vector<int> counting;  // the attached programs on which figures depend
    std::vector<int> made_up;   // those without which they come late: where one was skipped, that is found out
    ring_buffer* ring = nullptr;
    std::vector<kernel_event> events;
    KernelTables tables;
    std::optional<GuardProgram> guard;

    Parts() = default;
    Parts(const Parts&) = delete;
    ~Parts() {
        guard.reset();
        for (const int program : counting) close(program);
        for (const int program : made_up) close(program);
        for (const auto& [name, link] : links) bpf_link__destroy(link);
        ring_buffer__free(ring);
        if (memory) munmap(memory, sizeof *memory);
        if (skeleton) kernel_counts::destroy(skeleton);
    }

    // What looks in another way is another program.
    std::string version() const {
        std::size_t bytes = 0;
        const auto* object = kernel_counts::elf_bytes(&bytes);
        return program_version(object, bytes) + (look == Look::modified_return ? "-modified" : "");
    }

    Result<void> open() {
        skeleton = kernel_counts::open();
        if (!skeleton) return Error{fmt::format("the BPF program cannot be read: {}", reason(errno))};
        return {};
    }

    Result<void> load() {
        if (const int status = kernel_counts::load(skeleton); status != 0)
            return Error{fmt::format("the BPF program cannot be loaded: {}{}", reason(-status), take_verifier_words())};
        void* mapped = mmap(nullptr, sizeof *memory, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(skeleton->maps.bss), 0);
        if (mapped == MAP_FAILED) return Error{fmt::format("the BPF program's memory cannot be mapped: {}", reason(errno))};
        memory = static_cast<decltype(memory)>(mapped);
        tables = KernelTables(memory->openers, skeleton->maps.guests, skeleton->maps.holders);
        return {};
    }

    bpf_program* program(const char* name) const { return bpf_object__find_program_by_name(skeleton->obj, name); }

    void choose(const Hook& hook) {
        auto* of = program(hook.program);
        bpf_program__set_autoload(of, true);
        if (fprobes && hook.by == Hook::By::kprobe) bpf_program__set_expected_attach_type(of, BPF_TRACE_KPROBE_MULTI);
    }

    bpf_link* link(const Hook& hook) {
        if (!fprobes || hook.by != Hook::By::kprobe) return bpf_program__attach(program(hook.program));
        const char* function = hook.function;
        bpf_kprobe_multi_opts options{};
        options.sz = sizeof options;
        options.syms = &function;
        options.cnt = 1;
        return bpf_program__attach_kprobe_multi_opts(program(hook.program), nullptr, &options);
    }

    static bool can_attach(const Hook& hook, const KernelFunctions& types) {
        return hook.by == Hook::By::kprobe || types.has(hook.function);
    }

    Result<void> load(const KernelFunctions& types) {
        fprobes = types.has("register_fprobe_syms");
        if (auto opened = open(); !opened) return opened;
        bpf_program* any = nullptr;
        bpf_object__for_each_program(any, skeleton->obj) bpf_program__set_autoload(any, false);
        for (const auto& hook : kernel_hooks())
            if (can_attach(hook, types)) choose(hook);
        skeleton->rodata->guarded = look.has_value();
        GuardProgram::select(skeleton->obj, look, [&](const char* function) { return types.has(function); });
        if (auto loaded = load(); !loaded) return loaded;
        for (u32 i = 0; i < opener_slots; ++i) memory->openers[i].id = 1ULL << 32 | i;
        return {};
    }

    void depend_on(const Hook& hook, int program) {
        const bool late = hook.unknown == late_return || (look && hook.by == Hook::By::fexit);
        (late ? made_up : counting).push_back(program);
    }

    Result<void> attach(const Hook& hook, const KernelFunctions& types) {
        if (!can_attach(hook, types))
            return no_hook(hook, "the kernel's type information has no such function, or the module is not loaded");
        auto* attached = link(hook);
        if (!attached) return no_hook(hook, reason(errno));
        links.push_back({hook.program, attached});
        depend_on(hook, fcntl(bpf_program__fd(program(hook.program)), F_DUPFD_CLOEXEC, 0));
        return {};
    }

    Result<void> attach(const KernelFunctions& types, std::vector<std::string>& blind) {
        if (auto loaded = load(types); !loaded) return loaded;
        for (const auto& hook : kernel_hooks()) {
            const auto done = attach(hook, types);
            if (done) continue;
            if (!hook.unknown) return done;
            blind.push_back(fmt::format("{}: {}", done.error(), hook.unknown));
        }
        if (auto guards = look ? attach_guard() : Result<void>(); !guards) return guards;
        return listen();
    }

    GuardProgram::Words guard_words() const {
        return {memory->openers, &memory->guard_refusals, &memory->guard_seen_ns, &memory->guard_judges, &memory->guard_asked,
                &memory->guard_asks_cgroup, &memory->guard_asks_ids, &memory->lists_all};
    }

    Result<void> attach_guard() {
        auto attached = GuardProgram::attach(skeleton->obj, links, version(), guard_words());
        if (!attached) return Error{attached.error()};
        guard.emplace(std::move(*attached));
        return {};
    }

    // What the kernel has kept of this very program.
    Result<void> take_over(std::vector<std::string>& blind) {
        if (auto opened = open(); !opened) return opened;
        auto pinned = take_pinned(skeleton->obj, version());
        if (!pinned) return Error{pinned.error()};
        links = std::move(pinned->links);
        auto loaded = load();
        if (!loaded) {
            pinned->run.close();
            return loaded;
        }
        auto taken = GuardProgram::take_over(skeleton->obj, pinned->run, version(), guard_words());
        if (!taken) return Error{taken.error()};
        guard.emplace(std::move(*taken));
        for (const auto& hook : kernel_hooks()) know_kept(hook, blind);
        return listen();
    }

    void know_kept(const Hook& hook, std::vector<std::string>& blind) {
        const auto found = std::find_if(links.begin(), links.end(), [&](const auto& link) { return link.program == hook.program; });
        if (found == links.end()) {
            if (hook.unknown) blind.push_back(fmt::format("{} is not watched: {}", hook.function, hook.unknown));
            return;
        }
        bpf_link_info info{};
        u32 bytes = sizeof info;
        if (bpf_obj_get_info_by_fd(bpf_link__fd(found->link), &info, &bytes) != 0) return;
        if (const int fd = bpf_prog_get_fd_by_id(info.prog_id); fd >= 0) depend_on(hook, fd);
    }

    // The kernel does not run a program on a CPU where another thread was preempted in it; one by kprobe, where another
    // thread was preempted in a system call for a map.
    static u64 misses(const std::vector<int>& programs) noexcept {
        u64 sum = 0;
        for (const int program : programs) {
            bpf_prog_info info{};
            u32 bytes = sizeof info;
            if (bpf_obj_get_info_by_fd(program, &info, &bytes) == 0) sum += info.recursion_misses;
        }
        return sum;
    }

    Result<void> listen() {
        ring = ring_buffer__new(bpf_map__fd(skeleton->maps.events), append_event<kernel_event, most_events>, &events, nullptr);
        if (!ring) return Error{fmt::format("the BPF program's events cannot be read: {}", reason(errno))};
        return {};
    }
};

KernelProgram::KernelProgram(std::unique_ptr<Parts> parts) noexcept : parts_(std::move(parts)) {}
KernelProgram::KernelProgram(KernelProgram&&) noexcept = default;
KernelProgram& KernelProgram::operator=(KernelProgram&&) noexcept = default;
KernelProgram::~KernelProgram() = default;

Result<KernelProgram> KernelProgram::attach(std::vector<std::string>& blind, bool guarded) {
    if (!in_first_pid_namespace())
        return Error{"the kernel would tell pids of the node's pid namespace, and this one has its own"};
    keep_verifier_words();
    const bool preempts = preempts_threads();
    const bool tells_misses = !preempts || counts_skipped_probes(KernelFunctions());
    std::vector<std::optional<Look>> looks{std::nullopt};
    if (guarded) looks = {Look::security_hook, Look::modified_return};
    std::string why;
    const auto attach_by = [&](std::optional<Look> look, auto&& how) -> std::optional<KernelProgram> {
        auto parts = std::make_unique<Parts>();
        parts->look = look;
        parts->tells_misses = tells_misses;
        std::vector<std::string> unseen;
        if (const auto attached = how(*parts, unseen); !attached) {
            why += (why.empty() ? "" : "; ") + attached.error();
            return std::nullopt;
        }
        if (look == Look::modified_return && preempts) blind.push_back(fmt::format("{} ({})", skipped_by_preemption, why));
        blind.insert(blind.end(), unseen.begin(), unseen.end());
        return KernelProgram(std::move(parts));
    };
    for (const auto look : looks) {
        if (!look) continue;  // without the guard nothing is kept
        if (auto kept = attach_by(look, [](Parts& parts, auto& unseen) { return parts.take_over(unseen); })) return std::move(*kept);
    }
    why.clear();
    const KernelFunctions types;
    if (!types.any()) return Error{"the kernel has no type information (/sys/kernel/btf/vmlinux)"};
    if (is_locked_down()) return Error{std::string(locked_down)};
    for (const auto look : looks)
        if (auto attached = attach_by(look, [&](Parts& parts, auto& unseen) { return parts.attach(types, unseen); }))
            return std::move(*attached);
    return Error{why};
}

int KernelProgram::fd() const noexcept { return ring_buffer__epoll_fd(parts_->ring); }

std::vector<kernel_event> KernelProgram::events() {
    ring_buffer__consume(parts_->ring);
    return std::exchange(parts_->events, {});
}

KernelTables& KernelProgram::tables() noexcept { return parts_->tables; }
u64 KernelProgram::lost() const noexcept { return parts_->memory->lost; }
u64 KernelProgram::missed() const noexcept { return Parts::misses(parts_->counting); }
u64 KernelProgram::late() const noexcept { return Parts::misses(parts_->made_up); }
bool KernelProgram::tells_misses() const noexcept { return parts_->tells_misses; }
GuardProgram* KernelProgram::guard() noexcept { return parts_->guard ? &*parts_->guard : nullptr; }

}  // namespace rdmaquota
