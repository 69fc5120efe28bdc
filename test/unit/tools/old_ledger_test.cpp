// The reader of ledgers from before tenants.
#include "test/unit/tools/old_node.hpp"
#include "tools/common/upgrade/old_tenant.hpp"

#include <sys/stat.h>

#include <catch2/catch.hpp>

using namespace rdmaquota;
using namespace rdmaquota::upgrade;

namespace {

OldLedger open(const OldNode& node) {
    auto ledger = OldLedger::open(node.directory.path());
    REQUIRE(ledger);
    return std::move(*ledger);
}

}  // namespace

TEST_CASE("the old ledger's gates and owners are read", "[upgrade]") {
    OldNode node;
    OldProgram first(node, 0), second(node, 70);
    REQUIRE(first.charge_up_to("rxe0", 3) == 3);
    REQUIRE(second.charge_up_to("rxe0", 2) == 2);
    REQUIRE(second.charge("rxe0/1"));
    node.gate("rxe0") |= std::uint64_t{5} << 52;  // the tag
    const auto ledger = open(node);
    CHECK(amount_in(ledger.gates(), "rxe0", Resource::qp) == 5);
    CHECK(amount_in(ledger.gates(), "rxe0/1", Resource::qp) == 1);
    CHECK(total_in(ledger.gates(), Resource::qp) == 5);
    const auto owners = ledger.owners();
    REQUIRE(owners.size() == 2);
    CHECK(owners[1].pid == 1070);
    CHECK(owners[1].uid == 7);
    CHECK(owners[1].comm == "old");
    CHECK(amount_in(owners[1].usage, "rxe0", Resource::qp) == 2);
}

TEST_CASE("what ended processes have charged is told apart and locked", "[upgrade]") {
    OldNode node;
    const OldProgram alive(node, 0);
    { REQUIRE(OldProgram(node, 1).charge_up_to("rxe0", 4) == 4); }
    const auto ledger = open(node);
    CHECK(ledger.owners().size() == 1);
    const auto dead = ledger.lock_dead();
    CHECK(amount_in(dead.usage, "rxe0", Resource::qp) == 4);
    const auto file = LockFile::open(old_lock_path(node.directory.path(), 0));
    CHECK_FALSE(file->try_reap(1));
    CHECK(file->holder(1) == LockFile::Holder::reaper);
}

TEST_CASE("nobody is locked out while one old program lives", "[upgrade]") {
    OldNode node;
    SECTION("whose slot says so") {
        const OldProgram program(node, 4095);
        CHECK_FALSE(lock_out_owners(node.directory.path()));
    }
    SECTION("whose slot was written over") {
        const OldProgram program(node, 4095);
        node.ledger->states[4095] = 0;
        node.ledger->header.slots_used = 0;
        CHECK_FALSE(lock_out_owners(node.directory.path()));
    }
    SECTION("else all are") {
        { const OldProgram program(node, 5); }
        const auto gone = lock_out_owners(node.directory.path());
        REQUIRE(gone);
        CHECK_THROWS(OldProgram(node, 5));
    }
}

TEST_CASE("a forged old ledger is read within its bounds", "[upgrade]") {
    OldNode node;
    const OldProgram program(node, 0);
    auto* bytes = reinterpret_cast<unsigned char*>(node.ledger);
    SECTION("all bits set") { std::memset(bytes, 0xff, offsetof(OldLedgerData, slots) + 64 * sizeof(OldSlot)); }
    SECTION("names that are none") {
        for (std::uint32_t i = 0; i < old_device_slots; ++i) {
            node.ledger->devices[i].key = 2;
            std::memset(node.ledger->devices[i].name, i % 2 ? 'x' : '/', 64);
        }
    }
    SECTION("cut short") { std::filesystem::resize_file(old_data_path(node.directory.path()), 5000); }
    const auto ledger = open(node);
    for (const auto& [device, amounts] : ledger.gates()) CHECK(valid_device(device));
    CHECK(ledger.owners().size() <= old_owner_slots);
    CHECK(ledger.lock_dead().locks.size() <= 64);
    CHECK_FALSE(lock_out_owners(node.directory.path()));
}

TEST_CASE("forged pseudo devices count nowhere", "[upgrade]") {
    OldNode node;
    node.gate("*") = 5;
    node.gate("total") = 5;
    node.gate("rxe0") = UINT64_MAX;
    const auto gates = open(node).gates();
    CHECK(gates.size() == 1);
    CHECK(total_in(gates, Resource::qp) == old_gate_amount);
}

TEST_CASE("what is no file is no old ledger", "[upgrade]") {
    const OldNode node;
    const auto path = old_data_path(node.directory.path());
    std::filesystem::remove(path);
    CHECK_FALSE(OldLedger::open(node.directory.path()));
    REQUIRE(mkfifo(path.c_str(), 0600) == 0);
    CHECK_FALSE(OldLedger::open(node.directory.path()));
}

TEST_CASE("old programs are shown as a tenant of their own", "[upgrade]") {
    OldNode node;
    CHECK_FALSE(read_old_tenant(node.directory.path()));
    OldProgram program(node, 3);
    REQUIRE(program.charge_up_to("rxe0", 3) == 3);
    const auto tenant = read_old_tenant(node.directory.path());
    REQUIRE(tenant);
    CHECK(tenant->name == "default (older rdmaquota)");
    REQUIRE(tenant->devices.size() == 1);
    CHECK(tenant->devices[0].resources[0].usage == 3);
    CHECK(tenant->devices[0].resources[0].limit == 10);
    REQUIRE(tenant->processes.size() == 1);
    CHECK(tenant->processes[0].devices[0].resources[0].usage == 3);
}
