#include <sys/stat.h>

#include "shm/atomic.hpp"
#include "shm/ledger/ledger_copy.hpp"
#include "test/unit/shm/ledger_fixture.hpp"

using namespace rdmaquota;

namespace {

struct Copying : LedgerFixture {
    Ledger ledger = open();
    LedgerCopy copy;

    void read(LedgerCopy::Parts parts = LedgerCopy::Parts::usage) { REQUIRE(copy.read(path, parts)); }

    blkcnt_t blocks() const {
        struct stat status {};
        REQUIRE(::stat(data_path(path).c_str(), &status) == 0);
        return status.st_blocks;
    }
};

}  // namespace

TEST_CASE_METHOD(Copying, "a copy says what the ledger says") {
    const auto first = claim(ledger), second = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const Limits none;
    REQUIRE_FALSE(ledger.charge(first, device, qps(3), &none));
    REQUIRE_FALSE(ledger.charge(second, device, qps(4), &none));
    ledger.uncharge(second, device, qps(1));
    read();
    CHECK(copy.devices() == ledger.devices());
    REQUIRE(copy.owners().size() == 2);
    CHECK(copy.owners()[1].slot == second.slot());
    CHECK(copy.owners()[1].identity.comm == ledger.owners()[1].identity.comm);
    CHECK(copy.usage(first.slot(), device, Resource::qp) == 3);
    CHECK(copy.tenant_usage(device, Resource::qp) == 6);
    CHECK(copy.gate(device, Resource::qp) == 6);
    CHECK(copy.peak(device, Resource::qp) == 7);
}

TEST_CASE_METHOD(Copying, "activity is copied when it is asked for") {
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    ledger.count_cq_event(owner, device);
    ledger.count_qp_change(owner, device, 1, true);
    read();
    CHECK(copy.activity(owner.slot(), device).cq_events == 0);
    read(LedgerCopy::Parts::usage_and_activity);
    CHECK(copy.activity(owner.slot(), device).cq_events == 1);
    CHECK(copy.tenant_activity(device).qp_failed[1] == 1);
}

TEST_CASE_METHOD(Copying, "a slot that is free is not in the copy, whatever it holds") {
    auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    store(ledger.data().slots[owner.slot() + 1].usage[device][index(Resource::qp)], std::uint64_t{5});
    read();
    CHECK(copy.tenant_usage(device, Resource::qp) == 0);
    ledger.retire(owner);
    read();
    CHECK(copy.owners().empty());
}

TEST_CASE_METHOD(Copying, "events are read as the ledger has them") {
    Event event{};
    event.kind = EventKind::denied;
    for (std::uint32_t pid = 1; pid <= 3; ++pid) {
        event.pid = pid;
        ledger.record(event);
    }
    const auto events = read_events(path, 1);
    REQUIRE(events.size() == 2);
    CHECK(events[0].first == 1);
    CHECK(events[1].second.pid == 3);
}

TEST_CASE_METHOD(Copying, "a ledger that cannot be read, or is cut short, is an empty one") {
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const Limits none;
    REQUIRE_FALSE(ledger.charge(owner, device, qps(3), &none));
    read();
    CHECK_FALSE(copy.read(directory / "none"));
    CHECK(copy.owners().empty());
    CHECK(copy.tenant_usage(device, Resource::qp) == 0);
    REQUIRE(::truncate(data_path(path).c_str(), 8192) == 0);
    read();
    CHECK(copy.owners().empty());
}

TEST_CASE_METHOD(Copying, "copying a ledger full of holes allocates none of them") {
    auto& data = ledger.data();
    store(data.header.slots_used, std::uint64_t{owner_slots});
    for (auto& state : data.states) store(state, SlotState::live);
    for (std::uint32_t device = 0; device < device_slots; ++device)
        REQUIRE(ledger.device_index("rxe" + std::to_string(device)));
    const auto before = blocks();
    read(LedgerCopy::Parts::usage_and_activity);
    CHECK(copy.owners().size() == owner_slots);
    CHECK(read_events(path, 0).empty());
    CHECK(blocks() == before);
}
