// The structural search, on every real provider of this machine and on libraries that have none.
#include <catch2/catch.hpp>

#include <filesystem>
#include <vector>

#include <dlfcn.h>
#include <sys/resource.h>

#include "provider/adoption/device_table.hpp"

using namespace rdmaquota::provider;

namespace {

std::vector<std::string> installed_providers() {
    std::vector<std::string> paths;
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator(RDMAQUOTA_PROVIDER_DIR, ignored)) {
        const auto name = entry.path().filename().string();
        if (name.find("-rdmav") != std::string::npos && name.find("rdmaquota") == std::string::npos)
            paths.push_back(entry.path());
    }
    return paths;
}

}  // namespace

TEST_CASE("each installed provider has exactly one device table") {
    const auto paths = installed_providers();
    REQUIRE(paths.size() >= 10);
    for (const auto& path : paths) {
        INFO(path);
        void* handle = dlopen(path.c_str(), RTLD_NOW);
        REQUIRE(handle);
        const auto found = find_device_ops(handle);
        if (!found) FAIL(found.error());
        const std::string name = found.value().table->name;
        CHECK(path.find(name.substr(0, 3)) != std::string::npos);
        CHECK(in(found.value().image.relro, found.value().table));
    }
}

TEST_CASE("a library that is no provider has none") {
    void* handle = dlopen("libc.so.6", RTLD_NOW);
    REQUIRE(handle);
    const auto found = find_device_ops(handle);
    REQUIRE_FALSE(found);
    CHECK_THAT(found.error(), Catch::Contains("0 structures in"));
}

TEST_CASE("three functions are replaced in place, and then no second time") {
    void* handle = nullptr;
    for (const auto& path : installed_providers())
        if (path.find("rxe") != std::string::npos) handle = dlopen(path.c_str(), RTLD_NOW);
    REQUIRE(handle);
    const auto found = find_device_ops(handle);
    REQUIRE(found);
    auto* table = found.value().table;
    const auto before = *table;
    const auto ours = [](ibv_device*, int, void*) -> void* { return nullptr; };
    const auto our_match = [](SysfsDevice*) { return true; };
    const auto our_import = [](ibv_device*, int) -> void* { return nullptr; };
    // With no descriptor to be had, the pages are made writable instead.
    const bool descriptors = GENERATE(true, false);
    rlimit files{};
    getrlimit(RLIMIT_NOFILE, &files);
    const rlimit none{0, files.rlim_max};
    if (!descriptors) setrlimit(RLIMIT_NOFILE, &none);
    MemoryFile memory;
    const bool written = memory.write(table, &before, 0);
    const auto replaced = replace_functions(memory, found.value(), {our_match, ours, our_import});
    setrlimit(RLIMIT_NOFILE, &files);
    REQUIRE(written == descriptors);
    REQUIRE(replaced);
    CHECK(table->alloc_context == static_cast<decltype(before.alloc_context)>(ours));
    CHECK(table->match_device == static_cast<decltype(before.match_device)>(our_match));
    CHECK((table->import_context == nullptr) == (before.import_context == nullptr));
    CHECK(table->name == before.name);
    CHECK(table->alloc_device == before.alloc_device);
    CHECK_FALSE(find_device_ops(handle));  // what points out of the library is not taken again
    REQUIRE(memory.write(table, &before, sizeof before));
    CHECK(find_device_ops(handle));
    CHECK(table->alloc_context == before.alloc_context);
}
