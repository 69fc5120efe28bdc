// Running before others, and for how long.
#include <catch2/catch.hpp>

#include <ctime>

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tools/common/run_first.hpp"

using namespace rdmaquota;

namespace {

int policy_now() { return sched_getscheduler(0) & ~SCHED_RESET_ON_FORK; }

int policy_of_child() {
    const pid_t child = fork();
    if (child == 0) _exit(policy_now());
    int status = -1;
    while (waitpid(child, &status, 0) < 0) {
    }
    return WEXITSTATUS(status);
}

double processor_seconds() {
    timespec time{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) / 1e9;
}

bool set(int policy, int priority) {
    const sched_param parameters{.sched_priority = priority};
    return sched_setscheduler(0, policy, &parameters) == 0;
}

bool may_raise() { return set(SCHED_RR, 1) && set(SCHED_OTHER, 0); }

}  // namespace

TEST_CASE("who holds what others wait for runs first, until then, and what it starts does not") {
    if (!may_raise()) return;  // not allowed here, as in most containers
    CHECK(policy_now() == SCHED_OTHER);
    {
        const RunFirst first;
        CHECK(policy_now() == SCHED_RR);
        CHECK(policy_of_child() == SCHED_OTHER);
        {
            const RunFirst again;
        }
        CHECK(policy_now() == SCHED_RR);
    }
    CHECK(policy_now() == SCHED_OTHER);
}

TEST_CASE("who runs first for too long runs as others do") {
    if (!may_raise()) return;
    const RunFirst first;
    const double begin = processor_seconds();
    while (policy_now() == SCHED_RR && processor_seconds() - begin < 4) {
    }
    CHECK(policy_now() == SCHED_OTHER);
    CHECK(processor_seconds() - begin > 0.5);
}
