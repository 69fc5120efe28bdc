#include <catch2/catch.hpp>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <thread>
#include <vector>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "provider/host/arena.hpp"
#include "test/processes.hpp"

using namespace rdmaquota::provider;

TEST_CASE("memory of the arena is as large and as aligned as was asked for, and its own") {
    std::vector<std::pair<unsigned char*, std::size_t>> taken;
    for (std::size_t bytes : {1, 15, 16, 17, 100, 4096, 16300, 32760, 40000, 200000})
        for (std::size_t alignment : {16, 64, 4096}) {
            auto* memory = static_cast<unsigned char*>(arena::allocate(bytes, alignment));
            REQUIRE(memory);
            CHECK(reinterpret_cast<std::uintptr_t>(memory) % alignment == 0);
            std::memset(memory, static_cast<int>(taken.size()), bytes);
            taken.emplace_back(memory, bytes);
        }
    for (std::size_t i = 0; i < taken.size(); ++i) {
        const std::vector<unsigned char> expected(taken[i].second, static_cast<unsigned char>(i));
        CHECK(std::memcmp(taken[i].first, expected.data(), expected.size()) == 0);
    }
    for (const auto& [memory, bytes] : taken) arena::release(memory);
    arena::release(nullptr);
    CHECK_FALSE(arena::allocate(SIZE_MAX - 8, 16));
}

TEST_CASE("what is released is used again") {
    auto* first = arena::allocate(300, 16);
    arena::release(first);
    CHECK(arena::allocate(290, 16) == first);
    arena::release(first);
}

TEST_CASE("threads share the arena, and a child that is forked meanwhile can use it") {
    std::vector<std::thread> threads;
    std::atomic<bool> ends = false;
    for (int i = 0; i < 4; ++i)
        threads.emplace_back([&] {
            while (!ends) {
                void* some[16];
                for (auto*& memory : some) memory = arena::allocate(200, 16);
                for (auto* memory : some) arena::release(memory);
            }
        });
    for (int i = 0; i < 200; ++i) {
        arena::lock();
        const pid_t child = fork_child();
        arena::unlock();
        if (child == 0) _exit(arena::allocate(200, 16) ? 0 : 1);
        CHECK(wait_for_child(child) == 0);
    }
    ends = true;
    for (auto& thread : threads) thread.join();
}
