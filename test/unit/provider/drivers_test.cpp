#include "provider/adoption/drivers.hpp"

#include <filesystem>

#include <dlfcn.h>
#include <link.h>

#include <catch2/catch.hpp>

#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

TEST_CASE("providers are looked for beside the process's libibverbs first") {
    void* handle = dlopen("libibverbs.so.1", RTLD_NOW);
    REQUIRE(handle);
    const link_map* map = nullptr;
    REQUIRE(dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
    const auto beside = std::filesystem::path(map->l_name).parent_path() / "libibverbs";
    const auto directories = provider_directories();
    dlclose(handle);
    REQUIRE(directories.size() == 2);
    CHECK(directories.front() == beside);
}

TEST_CASE("the first directory that has the provider counts") {
    const TemporaryDirectory empty, image, node;
    const auto library = std::filesystem::path(TEST_LIBRARY_DIR) / "libredirected.so";
    for (const auto* directory : {&image, &node})
        std::filesystem::copy(library, *directory / "libmade_up-rdmav34.so");
    const auto driver = load_driver("made_up", 34, {empty.path(), image.path(), node.path()});
    REQUIRE(driver.handle);
    CHECK(driver.fresh);
    const link_map* map = nullptr;
    REQUIRE(dlinfo(driver.handle, RTLD_DI_LINKMAP, &map) == 0);
    CHECK(map->l_name == image / "libmade_up-rdmav34.so");
    dlclose(driver.handle);
    CHECK_FALSE(load_driver("made_up", 57, {empty.path(), image.path(), node.path()}).handle);
}
