#include "provider/adoption/drivers.hpp"

#include <filesystem>

#include <dlfcn.h>
#include <link.h>

#include <catch2/catch.hpp>

#include "test/unit/provider/test_library.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

TEST_CASE("a provider is loaded from the libibverbs' own directory") {
    const TemporaryDirectory own;
    std::filesystem::copy(test_library("libredirected.so"), own / "libmade_up-rdmav34.so");
    void* handle = load_driver("made_up", 34, own.path());
    REQUIRE(handle);
    const link_map* map = nullptr;
    REQUIRE(dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0);
    CHECK(map->l_name == own / "libmade_up-rdmav34.so");
    CHECK_FALSE(load_driver("made_up", 57, own.path()));
    dlclose(handle);
}
