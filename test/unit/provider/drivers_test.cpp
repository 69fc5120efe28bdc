#include "provider/adoption/drivers.hpp"

#include <filesystem>

#include <dlfcn.h>
#include <link.h>

#include <catch2/catch.hpp>

#include "test/unit/provider/test_library.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

TEST_CASE("providers are looked for beside the process's libibverbs first") {
    void* handle = dlopen("libibverbs.so.1", RTLD_NOW);
    REQUIRE(handle);
    const link_map* map = nullptr;
    REQUIRE(dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
    const auto library = std::filesystem::path(map->l_name).parent_path();
    CHECK(libibverbs_directory() == library);
    dlclose(handle);
    const auto here = provider_directories(library);
    CHECK(std::filesystem::equivalent(here.front(), library / "libibverbs"));
    CHECK(here.size() == 1);  // the same by two names would be opened twice
    const auto of_image = provider_directories("/image/lib");
    REQUIRE(of_image.size() == 2);
    CHECK(of_image.front() == "/image/lib/libibverbs");
    CHECK(of_image.back() == here.front());
}

TEST_CASE("the first directory that has the provider counts") {
    const TemporaryDirectory empty, image, node;
    const auto library = test_library("libredirected.so");
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
