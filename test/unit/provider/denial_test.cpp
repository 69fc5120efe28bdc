#include <catch2/catch.hpp>

#include <cerrno>

#include "provider/charging/denial.hpp"
#include "shm/paths.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

const Identity who{123, 0, 0, "perftest"};

std::string line(const Denial& denial, Mode mode = Mode::enforce, const std::string& directory = system_directory) {
    return denial_line("rxe0", denial, mode, EDQUOT, directory, who);
}

}  // namespace

TEST_CASE("a denial says what, where, who, how much, and what allows it") {
    CHECK(line({Resource::qp, Scope::tenant, false, 2, 2, 1, true}) ==
          "qp on rxe0 denied (EDQUOT): tenant default uses 2 of 2, 1 more asked by pid 123 (perftest); "
          "to allow it: rdmaquota set rxe0 qp=3");
    CHECK(line({Resource::mr_bytes, Scope::process, false, 4096, 8192, 8192, true}) ==
          "mr_bytes on rxe0 denied (EDQUOT): this process uses 4 KiB of 8 KiB, 8 KiB more asked by pid 123 (perftest); "
          "to allow it: rdmaquota set rxe0 mr_bytes=12KiB --process");
    CHECK(line({Resource::pd, Scope::tenant, true, 3, 3, 1, true}) ==
          "pd on rxe0 denied (EDQUOT): tenant default uses 3 of 3 over all devices, 1 more asked by "
          "pid 123 (perftest); to allow it: rdmaquota set total pd=4");
}

TEST_CASE("audit, other directories and unproved denials are named") {
    CHECK_THAT(line({Resource::qp, Scope::tenant, false, 2, 2, 1, true}, Mode::audit),
               Catch::StartsWith("qp on rxe0 would be denied (audit): "));
    CHECK_THAT(line({Resource::qp, Scope::process, false, 2, 2, 1, true}, Mode::enforce, "/tmp/q"),
               Catch::EndsWith("to allow it: rdmaquota --dir /tmp/q set rxe0 qp=3 --process"));
    CHECK_THAT(line({Resource::qp, Scope::tenant, false, 2, 2, 1, false}),
               Catch::EndsWith("(the ledger was too busy to prove it)"));
}
