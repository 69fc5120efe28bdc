// Redirection of a real library's functions, for users that were bound before, at first use, and later.
#include <cstdio>
#include <fstream>
#include <string>

#include <catch2/catch.hpp>

#include <dlfcn.h>

#include "provider/dv/redirect.hpp"
#include "test/unit/provider/test_library.hpp"

using namespace rdmaquota::provider;

namespace {

using Function = int();

int ours() { return 42; }

void* load(const char* name) {
    void* handle = dlopen(test_library(name).c_str(), RTLD_LAZY);
    REQUIRE(handle);
    return handle;
}

// Of the library's memory, as proc_pid_maps(5) has it.
std::size_t writable_bytes() {
    std::ifstream maps("/proc/self/maps");
    std::size_t sum = 0;
    for (std::string line; std::getline(maps, line);) {
        std::size_t begin = 0, end = 0;
        char access[5] = "";
        if (std::sscanf(line.c_str(), "%zx-%zx %4s", &begin, &end, access) == 3 && access[1] == 'w' &&
            line.ends_with("/libredirected.so"))
            sum += end - begin;
    }
    return sum;
}

Function* find(void* handle, const char* name) { return reinterpret_cast<Function*>(dlsym(handle, name)); }

}  // namespace

TEST_CASE("a redirected function is ours for all but its own library") {
    void* library = load("libredirected.so");
    void* user = load("libredirected_user.so");
    REQUIRE(find(user, "user_answer")() == 1);
    auto* const fetched_before = find(library, "answer");

    Redirection table[] = {
        {"answer", "NODE_1", reinterpret_cast<void*>(ours)},
        {"twice", "NODE_1", reinterpret_cast<void*>(ours)},  // has another version
        {"missing", "NODE_1", reinterpret_cast<void*>(ours)},
    };
    const auto writable_before = writable_bytes();
    MemoryFile memory;
    const auto done = redirect(memory, library, table);
    if (!done) FAIL(done.error());

    CHECK(writable_before != 0);
    CHECK(writable_bytes() == writable_before);
    // Looked up now.
    CHECK(find(library, "answer") == ours);
    CHECK(reinterpret_cast<Function*>(dlvsym(library, "answer", "NODE_1")) == ours);
    CHECK(find(user, "answer") == ours);
    // Bound before, in code and in data.
    CHECK(find(user, "user_answer")() == 42);
    CHECK((*reinterpret_cast<Function**>(dlsym(user, "user_pointer")))() == 42);
    // Loaded later.
    CHECK(find(load("libredirected_later.so"), "user_answer")() == 42);
    // The library's own call, which is bound only now.
    CHECK(find(library, "own_answer")() == 1);
    // The real one is there for us.
    CHECK(table[0].real == reinterpret_cast<void*>(fetched_before));
    CHECK(fetched_before() == 1);
    // Another version and a function that is missing are left alone.
    CHECK(table[1].real == nullptr);
    CHECK(find(library, "twice")() == 2);
    CHECK(table[2].real == nullptr);
    CHECK(find(library, "missing") == nullptr);
}
