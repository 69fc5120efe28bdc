#include "tools/rdmaquotad/loop/loop.hpp"

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
