// oracle [--device NAME] [--no-kernel] [--guard] [--seed N] [--steps N] [--new-sidecar N] [PHASE...]: random verbs calls, after
// which the ledger, the kernel and the oracle's own account must agree. PHASE is single, limits, threads, resizers,
// processes or unplug; all but unplug when none is named. The same seed and steps make the same calls. Runs as root,
// since it changes the limits; the quota directory is the node's or RDMAQUOTA_DIR. The last line is 'N passed, N
// failed'.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.hpp"
#include "phases.hpp"
#include "test/processes.hpp"

namespace oracle {
namespace {

// In memory that the phases' processes share.
struct Counts {
    unsigned passed = 0, failed = 0;
};
Counts& counts() {
    static auto* const shared =
        static_cast<Counts*>(mmap(nullptr, sizeof(Counts), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    return *shared;
}

void play(const std::string& phase, const Stage& stage, Accounting& accounting) {
    if (phase == "single")
        single(stage, accounting, false);
    else if (phase == "limits")
        single(stage, accounting, true);
    else if (phase == "threads")
        threads(stage, accounting);
    else if (phase == "resizers")
        resizers(stage, accounting);
    else if (phase == "processes")
        processes(stage, accounting);
    else if (phase == "unplug")
        unplug(stage, accounting);
    else
        report(phase, "there is no such phase");
}

// A phase is a process of its own, after whose end nothing is left.
void run(const std::string& phase, const Stage& stage, Accounting& accounting) {
    const auto begin = std::time(nullptr);
    std::fflush(stdout);
    const pid_t child = fork_child();
    if (child == 0) {
        play(phase, stage, accounting);
        std::fflush(stdout);
        _exit(0);
    }
    const int status = wait_for_child(child);
    report(phase + " ends in order", status == 0 ? "" : fmt::format("wait status {:#x}", status));
    report("and nothing of it is left", accounting.lasting_disagreement({}));
    fmt::print("# {} took {} s\n", phase, std::time(nullptr) - begin);
}

}  // namespace

void report(const std::string& name, const std::string& wrong, const std::string& story) {
    ++(wrong.empty() ? counts().passed : counts().failed);
    fmt::print("{} - {}\n", wrong.empty() ? "ok" : "not ok", name);
    if (!wrong.empty()) fmt::print("    # {}\n{}", wrong, story);
    std::fflush(stdout);
}

int finish() {
    fmt::print("{} passed, {} failed\n", counts().passed, counts().failed);
    return counts().failed ? 1 : 0;
}

ibv_device* find_device(const std::string& name) {
    static ibv_device** const list = ibv_get_device_list(nullptr);
    for (auto* device = list; device && *device; ++device)
        if (name == ibv_get_device_name(*device)) return *device;
    fmt::print(stderr, "oracle: no RDMA device {}\n", name);
    std::exit(2);
}

}  // namespace oracle

int main(int argc, char** argv) {
    using namespace oracle;
    Stage stage{"rxe0", true, static_cast<std::uint64_t>(std::time(nullptr)) % 1'000'000, 1000, 0, false};
    std::vector<std::string> phases;
    for (int i = 1; i < argc; ++i) {
        const std::string word = argv[i];
        const bool more = i + 1 < argc;
        if (word == "--device" && more)
            stage.device = argv[++i];
        else if (word == "--no-kernel")
            stage.with_kernel = false;
        else if (word == "--guard")
            stage.guard = true;
        else if (word == "--seed" && more)
            stage.seed = std::strtoull(argv[++i], nullptr, 10);
        else if (word == "--steps" && more)
            stage.steps = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
        else if (word == "--new-sidecar" && more)
            stage.new_sidecar = static_cast<unsigned>(std::strtoul(argv[++i], nullptr, 10));
        else
            phases.push_back(word);
    }
    if (phases.empty()) phases = {"single", "limits", "threads", "resizers", "processes"};
    fmt::print("# to repeat this: --seed {} --steps {}\n", stage.seed, stage.steps);
    std::fflush(stdout);
    if (stage.with_kernel) enter_cgroup();
    counts() = {};
    Accounting accounting(stage.device, stage.with_kernel, stage.new_sidecar, stage.guard);
    for (const auto& phase : phases) run(phase, stage, accounting);
    if (stage.guard) {
        report("the guard's account was there", accounting.guard_answers() > 0 ? "" : "no sidecar ever answered");
        fmt::print("# {} comparisons with the guard\n", accounting.guard_answers());
    }
    return finish();
}
