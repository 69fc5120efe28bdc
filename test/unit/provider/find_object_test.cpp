#include "provider/host/find_object.hpp"

#include <cstdlib>

#include <catch2/catch.hpp>


using namespace rdmaquota::provider;

#ifdef DLFO_STRUCT_HAS_EH_DBASE
TEST_CASE("the unwinder is told what the C library would tell it") {
    const auto* name = "here";
    void* addresses[] = {reinterpret_cast<void*>(&find_object), reinterpret_cast<void*>(&std::abort),
                         const_cast<char*>(name)};
    for (void* address : addresses) {
        dl_find_object own{}, libc{};
        REQUIRE(_dl_find_object(address, &libc) == 0);
        REQUIRE(find_object(address, &own) == 0);
        CHECK(own.dlfo_eh_frame == libc.dlfo_eh_frame);
        CHECK(own.dlfo_map_start == libc.dlfo_map_start);
        CHECK(own.dlfo_map_end == libc.dlfo_map_end);
    }
}

TEST_CASE("an address in no shared object has no unwind table") {
    int here = 0;
    dl_find_object result{};
    CHECK(find_object(&here, &result) == -1);
    CHECK(find_object(nullptr, &result) == -1);
}
#endif
