#include "tools/rdmaquotad/kernel/kernel_preemption.hpp"

#include <catch2/catch.hpp>

using rdmaquota::preempts_threads;

TEST_CASE("whether the kernel preempts threads is what it says of itself") {
    constexpr auto dynamic = "#1 SMP PREEMPT_DYNAMIC Debian 6.12.117-1 (2026-11-12)";
    CHECK_FALSE(preempts_threads("none (voluntary) full ", dynamic, "preempt=full"));
    CHECK_FALSE(preempts_threads("(none) voluntary full ", dynamic, ""));
    CHECK(preempts_threads("none voluntary (full) ", dynamic, "preempt=none"));
    CHECK(preempts_threads("full (lazy) ", dynamic, ""));
}

TEST_CASE("where the mode cannot be read, whatever is possible counts") {
    CHECK(preempts_threads("", "#1 SMP PREEMPT_DYNAMIC", "root=/dev/vda quiet"));
    CHECK_FALSE(preempts_threads("", "#1 SMP PREEMPT_DYNAMIC", "quiet preempt=voluntary"));
    CHECK_FALSE(preempts_threads("", "#1 SMP PREEMPT_DYNAMIC", "preempt=none"));
    CHECK(preempts_threads("", "#1 SMP PREEMPT", "preempt=none"));
    CHECK(preempts_threads("", "#1 SMP PREEMPT_LAZY", ""));
    CHECK(preempts_threads("(voluntary) full", "#1 SMP PREEMPT_RT", ""));
    CHECK_FALSE(preempts_threads("", "#1 SMP", ""));
}
