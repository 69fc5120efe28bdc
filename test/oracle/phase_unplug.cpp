// The device goes away while objects are alive.
#include <cstdlib>

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include "kernel.hpp"
#include "phases.hpp"
#include "test/processes.hpp"
#include "test/waiting.hpp"

namespace oracle {
namespace {

pid_t run(const char* command) {
    const pid_t child = fork_child();
    if (child == 0) {
        execl("/bin/sh", "sh", "-c", command, static_cast<char*>(nullptr));
        _exit(127);
    }
    return child;
}

bool succeeds(pid_t child) {
    int status = -1;
    return waitpid(child, &status, 0) == child && status == 0;
}

bool is_gone(const std::string& device) {
    return eventually([&] { return !resource_counts(device).count("qp"); });
}

}  // namespace

// rxe's own removal waits for those who have the device open, so it goes on beside us.
void unplug(const Stage& stage, Accounting& accounting) {
    Pool pool;
    Player player(pool, accounting, find_device(stage.device), stage.seed, true);
    player.destroy_queues_first();
    for (unsigned i = 0; i < 200; ++i) player.step();
    const auto alive = pool.size();
    const pid_t removal = run(fmt::format("rdma link delete {}", stage.device).c_str());
    usleep(300'000);
    for (unsigned i = 0; i < 40; ++i) player.step();
    player.close_all();
    report(fmt::format("unplugged with {} objects alive, the device can be closed", alive), player.wrong(),
           player.story());
    report("and goes", succeeds(removal) && is_gone(stage.device) ? "" : "it is still there");
    report("and nothing is left in the ledger",
           accounting.disagreement({}).find("ledger") == std::string::npos ? "" : accounting.disagreement({}));
    const pid_t addition = run(fmt::format("rdma link add {} type rxe netdev dummy0", stage.device).c_str());
    report("plugged in again, it is there", succeeds(addition) ? "" : "rdma link add failed");
}

}  // namespace oracle
