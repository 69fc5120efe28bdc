#include "test/unit/shm/ledger_fixture.hpp"
#include "tools/rdmaquotad/bypass/charges.hpp"

using namespace rdmaquota;

namespace {

struct ChargesFixture : LedgerFixture {
    Ledger ledger = open();
    Charges charges;

    static ResourceCounts qps_and_pds(std::uint64_t qp, std::uint64_t pd) {
        ResourceCounts counts{};
        counts[index(Resource::qp)] = qp;
        counts[index(Resource::pd)] = pd;
        return counts;
    }
    void keep(const Charges::ByDevice& amounts) { charges.keep(ledger, {{7, {{7, 7, 0, "bypasser"}, amounts}}}); }
    std::uint64_t usage(const char* device, Resource resource) {
        return ledger.tenant_usage(*ledger.device_index(device), resource);
    }
};

}  // namespace

TEST_CASE_METHOD(ChargesFixture, "what a bypass has is charged in its name, and follows it") {
    keep({{"rxe0", qps_and_pds(3, 1)}});
    CHECK(usage("rxe0", Resource::qp) == 3);
    const auto owners = ledger.owners();
    REQUIRE(owners.size() == 1);
    CHECK(owners[0].identity.pid == 7);
    CHECK(charges.holds(owners[0].slot));
    keep({{"rxe0", qps_and_pds(2, 5)}});
    CHECK(usage("rxe0", Resource::qp) == 2);
    CHECK(usage("rxe0", Resource::pd) == 5);
}

TEST_CASE_METHOD(ChargesFixture, "a bypass that ends on one device stays charged on the other") {
    keep({{"rxe0", qps_and_pds(3, 1)}, {"rxe1", qps_and_pds(4, 0)}});
    keep({{"rxe1", qps_and_pds(4, 0)}});
    CHECK(usage("rxe0", Resource::qp) == 0);
    CHECK(usage("rxe0", Resource::pd) == 0);
    CHECK(usage("rxe1", Resource::qp) == 4);
}

TEST_CASE_METHOD(ChargesFixture, "an end gives everything back, and the slot") {
    keep({{"rxe0", qps_and_pds(3, 1)}});
    charges.end(ledger);
    CHECK(usage("rxe0", Resource::qp) == 0);
    CHECK(ledger.owners().empty());
}

TEST_CASE_METHOD(ChargesFixture, "in a ledger that took the place of another all is charged again") {
    keep({{"rxe0", qps_and_pds(3, 1)}});
    REQUIRE(Ledger::replace(path));
    ledger = open();
    charges.forget();
    keep({{"rxe0", qps_and_pds(3, 1)}});
    CHECK(usage("rxe0", Resource::qp) == 3);
}
