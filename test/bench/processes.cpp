// processes [--milliseconds N] [--runs N]: how many charges with their release 1, 4, 16 and 64
// processes of one tenant do per second together, and per second of CPU that they took; and the share of the slowest, 1
// being fair.
#include <algorithm>
#include <atomic>
#include <ctime>
#include <new>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/processes.hpp"
#include "test/bench/accounting.hpp"
#include "test/bench/measure.hpp"

namespace {

using namespace rdmaquota;
using namespace rdmaquota::bench;

constexpr unsigned most_processes = 64;

struct alignas(64) Done {
    std::uint64_t pairs = 0;
    double cpu_seconds = 0;
};

struct Control {
    std::atomic<unsigned> ready{0};
    std::atomic<bool> go{false};
    std::atomic<bool> stop{false};
    Done done[most_processes];
};

double cpu_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

void work(Site& site, Control& control, Done& done, const Amounts& amounts) {
    const auto limits = far_limits();
    const auto accounting = site.join();
    ++control.ready;
    while (!control.go) usleep(100);
    std::uint64_t pairs = 0;
    const auto cpu = cpu_seconds();
    while (!control.stop.load(std::memory_order_relaxed)) {
        if (!accounting->charge(amounts, limits.data())) give_up("denied with room left");
        accounting->uncharge(amounts);
        ++pairs;
    }
    done = {pairs, cpu_seconds() - cpu};
}

struct Outcome {
    double per_second = 0;
    double per_cpu_second = 0;
    double slowest_share = 0;
};

Outcome run(const Side& side, unsigned processes, unsigned milliseconds, const Amounts& amounts) {
    void* memory = mmap(nullptr, sizeof(Control), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) give_up("no shared memory");
    auto& control = *new (memory) Control;
    const auto site = side.make();
    std::vector<pid_t> children;
    for (unsigned i = 0; i < processes; ++i) {
        const pid_t child = fork_child();
        if (child == 0) {
            work(*site, control, control.done[i], amounts);
            _exit(0);
        }
        children.push_back(child);
    }
    while (control.ready < processes) usleep(1000);
    const auto start = now_ns();
    control.go = true;
    usleep(milliseconds * 1000);
    control.stop = true;
    const auto seconds = elapsed_ns(start) / 1e9;
    for (const pid_t child : children) wait_for_child(child);

    std::uint64_t total = 0;
    std::uint64_t least = UINT64_MAX;
    double cpu = 0;
    for (unsigned i = 0; i < processes; ++i) {
        total += control.done[i].pairs;
        cpu += control.done[i].cpu_seconds;
        least = std::min(least, control.done[i].pairs);
    }
    munmap(memory, sizeof(Control));
    if (total == 0) give_up("nothing was done");
    return {static_cast<double>(total) / seconds, static_cast<double>(total) / cpu,
            static_cast<double>(least) * processes / static_cast<double>(total)};
}

}  // namespace

int main(int argc, char** argv) {
    const auto milliseconds = number_option(argc, argv, "--milliseconds", 2000);
    const auto runs = number_option(argc, argv, "--runs", 3);
    for (const unsigned processes : {1U, 4U, 16U, most_processes}) {
        std::vector<double> rate[sides.size()];
        std::vector<double> cpu_rate[sides.size()];
        std::vector<double> share[sides.size()];
        for (unsigned i = 0; i < runs; ++i)
            for (std::size_t s = 0; s < sides.size(); ++s) {
                const auto outcome = run(sides[s], processes, milliseconds, one_qp());
                rate[s].push_back(outcome.per_second);
                cpu_rate[s].push_back(outcome.per_cpu_second);
                share[s].push_back(outcome.slowest_share);
            }
        for (std::size_t s = 0; s < sides.size(); ++s) {
            const auto which = std::to_string(processes) + "." + sides[s].name;
            print("processes." + which, rate[s]);
            print("processes_cpu." + which, cpu_rate[s]);
            print("fairness." + which, share[s]);
        }
    }
}
