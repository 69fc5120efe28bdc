// A ledger of its own for one test.
#pragma once

#include <catch2/catch.hpp>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "test/unit/temporary_directory.hpp"

namespace rdmaquota {

struct LedgerFixture {
    TemporaryDirectory directory;
    std::string path = directory / "default";

    LedgerFixture() { REQUIRE(Ledger::create(path, {})); }

    Ledger open() {
        auto ledger = Ledger::open(path);
        if (!ledger) FAIL(ledger.error());
        return std::move(*ledger);
    }

    static Owner claim(Ledger& ledger) {
        auto owner = ledger.claim(identity_of_self());
        if (!owner) FAIL(owner.error());
        return std::move(*owner);
    }
};

inline Amounts qps(std::uint64_t count) { return Amounts{}.add(Resource::qp, count); }

inline Limits tenant_limit(std::uint64_t limit) {
    Limits limits;
    limits.tenant = limit;
    return limits;
}

}  // namespace rdmaquota
