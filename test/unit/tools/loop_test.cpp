#include "tools/rdmaquotad/core/loop.hpp"

#include <chrono>

#include <sys/epoll.h>
#include <unistd.h>

#include <catch2/catch.hpp>

using namespace rdmaquota;

// As a child does that was forked meanwhile and keeps the descriptor.
TEST_CASE("a source that ends in its own call is forgotten, though its descriptor stays open elsewhere") {
    Loop loop;
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const int kept = ::dup(ends[0]);
    int calls = 0;
    Loop::Source source = loop.watch(ends[0], EPOLLIN, [&](std::uint32_t) {
        ++calls;
        source = {};
        ::close(ends[0]);
    });
    REQUIRE(::write(ends[1], "a", 1) == 1);
    const auto end = loop.every(std::chrono::milliseconds(50), [&] { loop.stop(0); });
    CHECK(loop.run() == 0);
    CHECK(calls == 1);
    ::close(ends[1]);
    ::close(kept);
}

TEST_CASE("a timer whose call takes long is due at the same times") {
    using std::chrono::steady_clock;
    using namespace std::chrono_literals;
    Loop loop;
    int calls = 0;
    const auto begin = steady_clock::now();
    const auto timer = loop.every(100ms, [&] {
        ::usleep(60'000);
        if (++calls == 10) loop.stop(0);
    });
    CHECK(loop.run() == 0);
    CHECK(steady_clock::now() - begin < 1400ms);
}
