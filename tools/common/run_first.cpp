#include "tools/common/run_first.hpp"

#include <cerrno>
#include <csignal>
#include <utility>

#include <sched.h>
#include <sys/resource.h>

namespace rdmaquota {
namespace {

constexpr rlim_t longest_us = 1'000'000;

bool schedule(int policy, int priority) noexcept {
    const sched_param parameters{.sched_priority = priority};
    return sched_setscheduler(0, policy, &parameters) == 0;
}

// Who may not take back SCHED_RESET_ON_FORK may keep it.
void run_as_others() noexcept {
    if (!schedule(SCHED_OTHER, 0)) (void)schedule(SCHED_OTHER | SCHED_RESET_ON_FORK, 0);
}

void when_too_long(int) {
    const int error = errno;
    run_as_others();
    errno = error;
}

// The kernel sends SIGXCPU then.
bool limit_time() noexcept {
    struct sigaction action {};
    action.sa_handler = when_too_long;
    action.sa_flags = SA_RESTART;
    rlimit limit{};
    if (sigaction(SIGXCPU, &action, nullptr) != 0 || getrlimit(RLIMIT_RTTIME, &limit) != 0) return false;
    if (limit.rlim_max <= longest_us) return false;  // at the hard limit it kills
    limit.rlim_cur = longest_us;
    return setrlimit(RLIMIT_RTTIME, &limit) == 0;
}

}  // namespace

// One that has another policy already keeps it.
RunFirst::RunFirst() noexcept
    : raised_(sched_getscheduler(0) == SCHED_OTHER && limit_time() && schedule(SCHED_RR | SCHED_RESET_ON_FORK, 1)) {}

RunFirst::RunFirst(RunFirst&& other) noexcept : raised_(std::exchange(other.raised_, false)) {}

RunFirst::~RunFirst() {
    if (raised_) run_as_others();
}

}  // namespace rdmaquota
