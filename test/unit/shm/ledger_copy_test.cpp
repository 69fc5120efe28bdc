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

TEST_CASE_METHOD(Copying, "a copy has the right rows of many devices, and of slots with gaps between them") {
    std::vector<std::uint32_t> devices;
    for (int i = 0; i < 3; ++i) devices.push_back(*ledger.device_index("rxe" + std::to_string(i)));
    const std::uint32_t slots[] = {0, 63, 130, 200, 3000, owner_slots - 1};
    auto& data = ledger.data();
    store(data.header.slots_used, std::uint64_t{owner_slots});
    for (const auto slot : slots) {
        store(data.states[slot], SlotState::live);
        for (const auto device : devices) {
            data.usage[device][slot][index(Resource::qp)] = 10'000 * (device + 1) + slot;
            data.activity[device][slot].cq_events = 20'000 * (device + 1) + slot;
        }
    }
    read(LedgerCopy::Parts::usage_and_activity);
    CHECK(copy.owners().size() == std::size(slots));
    for (const auto device : devices) {
        for (const auto slot : slots) {
            CHECK(copy.usage(slot, device, Resource::qp) == 10'000 * (device + 1) + slot);
            CHECK(copy.activity(slot, device).cq_events == 20'000 * (device + 1) + slot);
        }
        CHECK(copy.tenant_usage(device, Resource::qp) == ledger.tenant_usage(device, Resource::qp));
        CHECK(copy.tenant_activity(device).cq_events == ledger.tenant_activity(device).cq_events);
    }
    CHECK(copy.usage(0, 3, Resource::qp) == 0);
    CHECK(copy.activity(0, device_slots).cq_events == 0);
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
    store(ledger.data().usage[device][owner.slot() + 1][index(Resource::qp)], std::uint64_t{5});
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
    event.kind = EventKind::reaped;
    event.pid = 4;
    ledger.record(event);
    EventCursor cursor{1, 0};
    const auto events = read_events(path, cursor);
    REQUIRE(events.size() == 3);
    CHECK(events[0].first == 1);
    CHECK(events[1].second.pid == 3);
    CHECK(events[2].first == 0);
    CHECK(events[2].second.pid == 4);
    CHECK(cursor == ledger.event_cursor());
    CHECK(read_events(path, cursor).empty());
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
    EventCursor cursor;
    CHECK(read_events(path, cursor).empty());
    CHECK(blocks() == before);
}
