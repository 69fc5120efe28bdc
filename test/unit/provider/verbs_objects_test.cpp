// Copies of libibverbs are known by what they define, whatever their names are.
#include <algorithm>

#include <dlfcn.h>

#include <catch2/catch.hpp>

#include "provider/abi/libibverbs.hpp"
#include "provider/adoption/device_table.hpp"
#include "provider/adoption/verbs_objects.hpp"
#include "test/unit/provider/test_library.hpp"

using namespace rdmaquota::provider;

namespace {

const VerbsObject* find(const std::vector<VerbsObject>& objects, std::uintptr_t base) {
    const auto found = std::find_if(objects.begin(), objects.end(), [base](const auto& object) { return object.base == base; });
    return found == objects.end() ? nullptr : &*found;
}

}  // namespace

TEST_CASE("a libibverbs of another name is found by its version node, and so is its driver") {
    void* node = dlopen("libibverbs.so.1", RTLD_NOW);
    void* driver = dlopen(test_library("libodd_driver.so").c_str(), RTLD_NOW);
    void* library = dlopen(test_library("libodd_name.so").c_str(), RTLD_NOW);
    REQUIRE(node);
    REQUIRE(driver);
    REQUIRE(library);
    const auto objects = verbs_objects();

    const auto* odd = find(objects, load_address(library));
    REQUIRE(odd);
    CHECK(odd->is_library);
    CHECK(odd->pabi == 57);
    CHECK(odd->path == test_library("libodd_name.so"));
    const auto* odd_driver = find(objects, load_address(driver));
    REQUIRE(odd_driver);
    CHECK_FALSE(odd_driver->is_library);
    CHECK(odd_driver->pabi == 57);
    const auto* real = find(objects, load_address(node));
    REQUIRE(real);
    CHECK(real->is_library);

    // The driver's own is that one, not the node's.
    const auto own = Libibverbs::set_ops_of(driver, 57);
    REQUIRE(own);
    CHECK(own == Libibverbs::set_ops_of(library, 57));
    CHECK_FALSE(Libibverbs::set_ops_of(driver, real->pabi));

    const auto directories = directories_of(*odd);
    CHECK(directories.configuration == "/opt/made-up/etc/libibverbs.d");
    CHECK(directories.providers == "/opt/made-up/lib64/libibverbs");
    CHECK(directories_of(*real).configuration == RDMAQUOTA_DRIVER_DIR);
    CHECK(directories_of(*real).providers == RDMAQUOTA_PROVIDER_DIR);
}

TEST_CASE("what has no texts of a libibverbs has the node's directories") {
    void* other = dlopen(test_library("libodd_driver.so").c_str(), RTLD_NOW);
    REQUIRE(other);
    const auto objects = verbs_objects();
    const auto* object = find(objects, load_address(other));
    REQUIRE(object);
    const auto directories = directories_of(*object);
    CHECK(directories.configuration == RDMAQUOTA_DRIVER_DIR);
    CHECK(directories.providers == RDMAQUOTA_PROVIDER_DIR);
}
