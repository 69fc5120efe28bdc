// Repeats the numbers of the shared layouts. When one of these fails, programs of two versions on
// one node would misread each other: raise the layout version and then correct the number here.
#include <catch2/catch.hpp>

#include <cstring>

#include <boost/interprocess/managed_mapped_file.hpp>

#include "provider/abi/layout.hpp"
#include "shm/ledger/ledger_file.hpp"
#include "shm/layout_version.hpp"
#include "shm/policy/compiled_sidecar.hpp"
#include "shm/policy/limits_segment.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

TEST_CASE("the ledger's layout is version 5") {
    CHECK(layout_version == 5);
    CHECK(ledger_magic == 0x3152474451414d52ULL);
    CHECK(offsetof(LedgerHeader, magic) == 0);
    CHECK(offsetof(LedgerHeader, layout_version) == 8);
    CHECK(offsetof(LedgerHeader, total_bytes) == 16);
    CHECK(offsetof(LedgerHeader, event_slots) == 36);
    CHECK(offsetof(LedgerHeader, slots_used) == 40);
    CHECK(offsetof(LedgerHeader, next_group) == 48);
    CHECK(offsetof(LedgerHeader, event_head) == 56);
    CHECK(offsetof(LedgerHeader, reaped) == 64);
    CHECK(offsetof(LedgerHeader, reconciled) == 72);
    CHECK(offsetof(LedgerData, devices) == 4096);
    CHECK(offsetof(LedgerData, gates) == 4096 + 64 * 128);
    CHECK(offsetof(LedgerData, peaks) == 12288 + 64 * 192);
    CHECK(offsetof(LedgerData, soft_since) == 24576 + 64 * 192);
    CHECK(offsetof(LedgerData, demand) == 36864 + 64 * 192);
    CHECK(offsetof(LedgerHeader, claims) == 80);
    CHECK(offsetof(LedgerHeader, repair_head) == 88);
    CHECK(offsetof(LedgerHeader, pause) == 128);
    CHECK(offsetof(LedgerHeader, total_rates) == 136);
    CHECK(offsetof(LedgerData, events) == 49152 + 64 * 192);
    CHECK(offsetof(LedgerData, repairs) == 61440 + 1024 * 192);
    CHECK(offsetof(LedgerData, states) == 258048 + 256 * 192);
    CHECK(offsetof(LedgerData, slots) == 307200 + 4096 * 4);
    CHECK(offsetof(LedgerData, usage) == 323584 + 4096 * 64);
    CHECK(offsetof(LedgerData, past_activity) == 585728 + 64 * 4096 * 192);
    CHECK(offsetof(LedgerData, activity) == 50917376 + 64 * 128);
    CHECK(sizeof(LedgerData) == 50925568 + 64 * 4096 * 64);
    CHECK(offsetof(Activity, qp_to) == 8);
    CHECK(offsetof(Activity, qp_failed) == 36);
    CHECK(offsetof(PastActivity, qp_failed) == 64);
    CHECK(offsetof(DeviceEntry, name) == 8);
    CHECK(sizeof(DeviceEntry) == 128);
    CHECK(offsetof(Slot, ops) == 0);
    CHECK(offsetof(Slot, owner) == 8);
    CHECK(offsetof(Slot, owner.start_time) == 16);
    CHECK(offsetof(Slot, owner.uid) == 24);
    CHECK(offsetof(Slot, owner.comm) == 32);
    CHECK(offsetof(Slot, total_rates) == 48);
    CHECK(sizeof(Slot) == 64);
    CHECK(offsetof(Event, time_ns) == 8);
    CHECK(offsetof(Event, kind) == 16);
    CHECK(offsetof(Event, resource) == 28);
    CHECK(offsetof(Event, used) == 40);
    CHECK(offsetof(Event, comm) == 64);
    CHECK(offsetof(Event, uid) == 80);
    CHECK(offsetof(Event, reason) == 84);
    CHECK(offsetof(Event, count) == 88);
    CHECK(offsetof(Event, first_time_ns) == 96);
    CHECK(sizeof(Event) == 192);
    CHECK(ledger_offset == 4096);
    CHECK(static_cast<int>(EventKind::reconciled) == 5);
    CHECK(event_scope(Scope::process, false) == 1);
    CHECK(event_scope(Scope::process, true) == 2);
    CHECK(event_scope(Scope::tenant, false) == 3);
    CHECK(event_scope(Scope::tenant, true) == 4);
    CHECK(ops_begin == 1);
    CHECK(ops_end == 65535);
}

TEST_CASE("the layout of limits is version 5") {
    CHECK(layout_version == 5);
    CHECK(offsetof(LimitsHeader, layout_version) == 8);
    CHECK(offsetof(LimitsHeader, row_count) == 12);
    CHECK(offsetof(LimitsHeader, generation) == 16);
    CHECK(offsetof(LimitsHeader, id) == 24);
    CHECK(offsetof(LimitsHeader, superseded) == 32);
    CHECK(offsetof(LimitsHeader, deny_errno) == 44);
    CHECK(offsetof(LimitsHeader, tenant) == 72);
    CHECK(offsetof(LimitsHeader, log_file) == 200);
    CHECK(sizeof(LimitsHeader) == 512);
    CHECK(offsetof(LimitsRow, scope) == 64);
    CHECK(offsetof(LimitsRow, reason) == 72);
    CHECK(offsetof(LimitsRow, effective) == 192);
    CHECK(offsetof(LimitsRow, soft) == 384);
    CHECK(sizeof(LimitsRow) == 576);
    CHECK(offsetof(Origin, own) == 24);
    CHECK(offsetof(Origin, why) == 32);
    CHECK(offsetof(LimitsHeader, grant_wait_plus_1) == 68);
    CHECK(offsetof(Origin, granted) == 96);
    CHECK(offsetof(Origin, soft_file) == 120);
    CHECK(sizeof(OriginRow) == 24 * 128);
    CHECK(limits_bytes(2, LimitsSegment::Parts::effective) == 1664);
    CHECK(limits_bytes(2, LimitsSegment::Parts::all) == 1664 + 2 * 3072);
    CHECK(static_cast<int>(Scope::tenant) == 1);
    CHECK(static_cast<int>(Mode::off) == 2);
}

TEST_CASE("the layout of the sidecar's part is version 5") {
    CHECK(offsetof(CompiledSidecar, web) == 3);
    CHECK(offsetof(CompiledSidecar, rule_count) == 4);
    CHECK(offsetof(CompiledSidecar, web_port) == 6);
    CHECK(offsetof(CompiledSidecar, backstop) == 8);
    CHECK(offsetof(CompiledSidecar, rules) == 264);
    CHECK(offsetof(CompiledRule, watch) == 64);
    CHECK(offsetof(CompiledRule, factor) == 88);
    CHECK(offsetof(CompiledRule, capacity) == 96);
    CHECK(offsetof(CompiledRule, floor) == 104);
    CHECK(offsetof(CompiledRule, tenant) == 128);
    CHECK(sizeof(CompiledRule) == 256);
    CHECK(static_cast<int>(CapacityOf::amount) == 3);
}

TEST_CASE("the resources keep their places") {
    const char* names[] = {"hca_object", "qp",         "send_wr", "recv_wr", "mr",       "mr_bytes", "cq",
                           "cqe",        "hca_handle", "pd",      "srq",     "srq_wr",   "mw",       "ah",
                           "xrcd",       "wq",         "rwq_ind", "flow",    "counters", "dm",       "dm_bytes"};
    REQUIRE(resource_count == 21);
    REQUIRE(limit_count == 23);
    CHECK(limit_table[21].name == "commands_per_s");
    CHECK(limit_table[22].name == "registered_per_s");
    for (std::size_t i = 0; i < resource_count; ++i) CHECK(resource_table[i].name == names[i]);
    CHECK(resource_slots == 24);
}

TEST_CASE("Boost finds the ledger by name where everyone else looks for it") {
    const TemporaryDirectory directory;
    REQUIRE(create_ledger_file(directory / "ledger"));
    using Segment = boost::interprocess::managed_mapped_file;
    Segment segment(boost::interprocess::open_only, (directory / "ledger").c_str());
    const auto found = segment.find_no_lock<Segment::handle_t>(ledger_object_name);
    REQUIRE(found.first);
    CHECK(*found.first == static_cast<Segment::handle_t>(ledger_offset));
    const auto mapping = map_ledger_file(directory / "ledger");
    REQUIRE(mapping);
    CHECK(std::memcmp(segment.get_address_from_handle(*found.first), ledger_data(*mapping), sizeof(LedgerHeader)) == 0);
}

// From libibverbs/dummy_ops.c of the releases named.
TEST_CASE("every op of every known release is listed and classified") {
    using namespace rdmaquota::provider;
    for (const auto& layout : layouts) {
        std::size_t count = 0;
        for (std::size_t i = 0; i < op_count; ++i) count += present(layout, static_cast<Op>(i));
        INFO("rdma-core " << layout.release);
        CHECK(count == layout.ops);
    }
    for (std::size_t i = 1; i < op_count; ++i) CHECK(op_table[i - 1].name < op_table[i].name);
    CHECK(position(layouts[2], Op::advise_mr) == 0);
    CHECK(position(layouts[2], Op::unimport_pd) == 75);
    CHECK(position(layouts[10], Op::unimport_pd) == 92);
    CHECK(position(layouts[2], Op::create_qp) == 19);
}
