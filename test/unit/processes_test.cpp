// The helpers of test/processes.hpp, on which other tests rely for not ending the machine.
#include <catch2/catch.hpp>

#include "test/processes.hpp"

TEST_CASE("no signal is sent to pid 0 or below, and nobody waits for it") {
    const pid_t pid = GENERATE(0, -1, -12345);
    CHECK_THROWS_AS(signal_process(pid, 0), std::invalid_argument);  // 0: were it sent, it would do nothing
    CHECK_THROWS_AS(wait_for_child(pid), std::invalid_argument);
}

TEST_CASE("a child's end is told") {
    ChildProcess good([] {});
    ChildProcess bad([] { throw 1; });
    ChildProcess endless([] { pause(); });
    CHECK(good.wait() == 0);
    CHECK(WEXITSTATUS(bad.wait()) == 1);
    CHECK(WTERMSIG(endless.end()) == SIGKILL);
    CHECK_THROWS_AS(good.wait(), std::invalid_argument);
}
