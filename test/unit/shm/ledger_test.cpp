// One process: charging, denying, totals, events, and the files' errors.
#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include <sys/stat.h>
#include <unistd.h>

#include "shm/ledger/ledger_file.hpp"
#include "test/unit/shm/ledger_fixture.hpp"

using namespace rdmaquota;

TEST_CASE_METHOD(LedgerFixture, "charges up to the limit, denies past it, and admits again after a release") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const auto limit = tenant_limit(2);
    CHECK_FALSE(ledger.charge(owner, device, qps(1), &limit));
    CHECK_FALSE(ledger.charge(owner, device, qps(1), &limit));
    const auto denial = ledger.charge(owner, device, qps(1), &limit);
    REQUIRE(denial);
    CHECK(denial->resource == Resource::qp);
    CHECK(denial->scope == Scope::tenant);
    CHECK(denial->used == 2);
    CHECK(denial->limit == 2);
    CHECK(denial->requested == 1);
    CHECK(denial->proved);
    ledger.uncharge(owner, device, qps(1));
    CHECK_FALSE(ledger.charge(owner, device, qps(1), &limit));
    CHECK(ledger.gate(device, Resource::qp) == 2);
    CHECK(ledger.usage(owner.slot(), device, Resource::qp) == 2);
    CHECK(ledger.peak(device, Resource::qp) == 2);
}

TEST_CASE_METHOD(LedgerFixture, "a charge of several resources is all or nothing") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const auto amounts = Amounts{}.add(Resource::qp, 1).add(Resource::send_wr, 10).add(Resource::hca_object, 1);
    Limits limits[3];
    limits[1].process = 15;
    CHECK_FALSE(ledger.charge(owner, device, amounts, limits));
    const auto denial = ledger.charge(owner, device, amounts, limits);
    REQUIRE(denial);
    CHECK(denial->resource == Resource::send_wr);
    CHECK(denial->scope == Scope::process);
    CHECK(ledger.gate(device, Resource::qp) == 1);
    CHECK(ledger.gate(device, Resource::hca_object) == 1);
    CHECK(ledger.usage(owner.slot(), device, Resource::send_wr) == 10);
    ledger.uncharge(owner, device, amounts);
    for (const auto r : {Resource::qp, Resource::send_wr, Resource::hca_object}) CHECK(ledger.gate(device, r) == 0);
}

TEST_CASE_METHOD(LedgerFixture, "totals are sums over devices, for the process and for the tenant") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto other = claim(ledger);
    const auto first = *ledger.device_index("mlx5_0");
    const auto second = *ledger.device_index("mlx5_1");
    Limits limits;
    limits.process_total = 2;
    limits.tenant_total = 3;
    CHECK_FALSE(ledger.charge(owner, first, qps(1), &limits));
    CHECK_FALSE(ledger.charge(owner, second, qps(1), &limits));
    const auto own = ledger.charge(owner, first, qps(1), &limits);
    REQUIRE(own);
    CHECK(own->scope == Scope::process);
    CHECK(own->total);
    CHECK_FALSE(ledger.charge(other, first, qps(1), &limits));
    const auto denial = ledger.charge(other, second, qps(1), &limits);
    REQUIRE(denial);
    CHECK(denial->scope == Scope::tenant);
    CHECK(denial->total);
    CHECK(denial->used == 3);
    CHECK(denial->proved);
    ledger.uncharge(owner, second, qps(1));
    CHECK_FALSE(ledger.charge(other, second, qps(1), &limits));
}

TEST_CASE_METHOD(LedgerFixture, "a device that was renamed keeps its cells and has its new name") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto limit = tenant_limit(1);
    const auto before = *ledger.device_index("uverbs0", "mlx5_0");
    CHECK_FALSE(ledger.charge(owner, before, qps(1), &limit));
    const auto after = *ledger.device_index("uverbs0", "rocep59s0");
    CHECK(after == before);
    CHECK(ledger.charge(owner, after, qps(1), &limit));
    CHECK(ledger.devices() == std::vector<LedgerDevice>{{before, "uverbs0", "rocep59s0"}});
    CHECK(*ledger.device_index("uverbs1", "mlx5_0") != before);
}

TEST_CASE_METHOD(LedgerFixture, "amounts at the edge of a cell neither wrap nor spill") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const Limits none[1];
    auto huge = Amounts{}.add(Resource::mr_bytes, 1);
    huge.amount[0] = max_amount;
    CHECK_FALSE(ledger.charge(owner, device, huge, none));
    const auto denial = ledger.charge(owner, device, Amounts{}.add(Resource::mr_bytes, 1), none);
    REQUIRE(denial);
    CHECK(denial->limit == max_amount);
    ledger.uncharge(owner, device, huge);
    CHECK(ledger.gate(device, Resource::mr_bytes) == 0);
    const auto limit = tenant_limit(0);
    CHECK(ledger.charge(owner, device, Amounts{}.add(Resource::mr_bytes, 1), &limit));
}

TEST_CASE_METHOD(LedgerFixture, "releasing more than there is stops at zero") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const Limits none[1];
    REQUIRE_FALSE(ledger.charge(owner, device, qps(1), none));
    ledger.uncharge(owner, device, qps(3));
    CHECK(ledger.usage(owner.slot(), device, Resource::qp) == 0);
    CHECK(ledger.gate(device, Resource::qp) == 0);
}

TEST_CASE_METHOD(LedgerFixture, "a gate that leaked is corrected before anyone is denied") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    ledger.data().gates[device][index(Resource::qp)] += 5;  // as a death between gate and slot leaves it
    const auto limit = tenant_limit(2);
    CHECK_FALSE(ledger.charge(owner, device, qps(1), &limit));
    CHECK(ledger.gate(device, Resource::qp) == 1);
    CHECK(ledger.data().header.reconciled == 1);
    CHECK(ledger.data().gates[device][index(Resource::qp)] >> gate_tag_shift == 1);
}

TEST_CASE_METHOD(LedgerFixture,
                 "an operation in flight keeps a view from being exact, and a denial from being proved") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto busy = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    ledger.data().slots[busy.slot()].ops += ops_begin;  // a process stopped in mid-charge
    ledger.data().gates[device][index(Resource::qp)] += 1;
    CHECK(ledger.reconcile(device, Resource::qp) == Ledger::View::not_quiescent);
    const auto limit = tenant_limit(1);
    const auto denial = ledger.charge(owner, device, qps(1), &limit);
    REQUIRE(denial);
    CHECK_FALSE(denial->proved);

    ledger.data().slots[busy.slot()].ops += ops_end;
    CHECK(ledger.reconcile(device, Resource::qp) == Ledger::View::corrected);
    CHECK(ledger.reconcile(device, Resource::qp) == Ledger::View::exact);
}

TEST_CASE_METHOD(LedgerFixture, "threads that race for the last units never get more than there are") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    std::atomic<int> held{0};
    std::atomic<int> most{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
        threads.emplace_back([&] {
            const auto limit = tenant_limit(3);
            for (int i = 0; i < 2'000; ++i) {
                if (ledger.charge(owner, device, qps(1), &limit)) continue;
                const int now = ++held;
                for (int seen = most; seen < now && !most.compare_exchange_weak(seen, now);) {
                }
                --held;
                ledger.uncharge(owner, device, qps(1));
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(most <= 3);
    CHECK(ledger.gate(device, Resource::qp) == 0);
    CHECK(ledger.usage(owner.slot(), device, Resource::qp) == 0);
}

TEST_CASE_METHOD(LedgerFixture, "devices get an index each, up to 64") {
    auto ledger = open();
    for (std::uint32_t i = 0; i < device_slots; ++i) CHECK(*ledger.device_index("d" + std::to_string(i)) == i);
    CHECK(*ledger.device_index("d7") == 7);
    CHECK_FALSE(ledger.device_index("one more"));
    CHECK(ledger.devices().size() == device_slots);
    CHECK(ledger.devices()[63].name == "d63");
}

TEST_CASE_METHOD(LedgerFixture, "the last of 64 devices is charged, denied and reaped like the first") {
    auto ledger = open();
    for (std::uint32_t i = 0; i < device_slots; ++i) REQUIRE(ledger.device_index("d" + std::to_string(i)));
    const auto last = device_slots - 1;
    const auto limit = tenant_limit(2);
    {
        const auto dies = claim(ledger);
        REQUIRE_FALSE(ledger.charge(dies, last, qps(2), &limit));
    }
    const auto owner = claim(ledger);
    CHECK_FALSE(ledger.charge(owner, last, qps(2), &limit));
    const auto denial = ledger.charge(owner, last, qps(1), &limit);
    REQUIRE(denial);
    CHECK(denial->proved);
    CHECK(ledger.tenant_usage(last, Resource::qp) == 2);
}

TEST_CASE_METHOD(LedgerFixture, "events come back in order, and the ring keeps the last 1024") {
    auto ledger = open();
    Event event{};
    event.kind = EventKind::denied;
    for (std::uint64_t i = 0; i < 3000; ++i) {
        event.requested = i;
        ledger.record(event);
    }
    const auto events = ledger.events();
    REQUIRE(events.size() == event_slots);
    CHECK(events.front().first == 3000 - event_slots);
    for (const auto& [number, e] : events) CHECK(e.requested == number);
    EventCursor cursor{2999, 0};
    CHECK(ledger.events(cursor).size() == 1);
    CHECK(cursor.denials == 3000);
    CHECK(ledger.events(cursor).empty());

    ledger.data().events[2999 % event_slots].sequence = 2 * 2999 + 1;  // its writer died
    CHECK(ledger.events().size() == event_slots - 1);
}

TEST_CASE_METHOD(LedgerFixture, "a denial alike is counted on its event, while the ring still has it") {
    auto ledger = open();
    Event event{};
    event.kind = EventKind::denied;
    event.pid = 7;
    const auto number = ledger.record(event);
    event.used = 9;
    CHECK(ledger.repeat(number, event));
    CHECK(ledger.repeat(number, event));
    auto events = ledger.events();
    REQUIRE(events.size() == 1);
    const auto seen = events.front().second;
    CHECK(seen.count == 3);
    CHECK(seen.used == 9);
    CHECK((seen.first_time_ns != 0 && seen.first_time_ns < seen.time_ns));

    auto other = event;
    for (auto change : {+[](Event& e) { e.pid = 8; }, +[](Event& e) { e.scope = 3; }, +[](Event& e) { e.resource = 2; },
                        +[](Event& e) { e.device = 1; }, +[](Event& e) { e.kind = EventKind::would_deny; },
                        +[](Event& e) { e.error = 11; }, +[](Event& e) { e.reason = 1; }}) {
        other = event;
        change(other);
        CHECK_FALSE(ledger.repeat(number, other));
    }
    ledger.data().events[number].sequence = 2 * number + 1;  // another thread writes it, or died
    CHECK_FALSE(ledger.repeat(number, event));
    for (std::uint32_t i = 0; i < event_slots; ++i) ledger.record(event);
    CHECK_FALSE(ledger.repeat(number, event));
}

TEST_CASE_METHOD(LedgerFixture, "denials do not push out repairs, nor repairs denials, and they come back by time") {
    auto ledger = open();
    Event denied{}, reaped{};
    denied.kind = EventKind::denied;
    reaped.kind = EventKind::reaped;
    ledger.record(reaped);
    for (int i = 0; i < 2000; ++i) ledger.record(denied);
    auto events = ledger.events();
    REQUIRE(events.size() == event_slots + 1);
    CHECK(events.front().second.kind == EventKind::reaped);
    for (std::uint64_t i = 0; i < 300; ++i) {
        reaped.kind = i % 2 ? EventKind::reaped : EventKind::reconciled;
        ledger.record(reaped);
    }
    EventCursor cursor;
    events = ledger.events(cursor);
    REQUIRE(events.size() == event_slots + repair_slots);
    CHECK(events.front().second.kind == EventKind::denied);
    CHECK(events.back().first == 300);
    for (std::size_t i = 1; i < events.size(); ++i)
        CHECK(events[i - 1].second.time_ns <= events[i].second.time_ns);
    CHECK(cursor == EventCursor{2000, 301});
    CHECK(cursor == ledger.event_cursor());
}

TEST_CASE_METHOD(LedgerFixture, "creating twice keeps the first ledger") {
    auto ledger = open();
    REQUIRE(ledger.device_index("rxe0"));
    REQUIRE(Ledger::create(path, {}));
    CHECK(open().devices().size() == 1);
    struct stat status {};
    REQUIRE(stat(path.c_str(), &status) == 0);
    CHECK((status.st_mode & 0777) == 0700);
}

TEST_CASE_METHOD(LedgerFixture, "the ledger's file is sparse") {
    struct stat status {};
    REQUIRE(stat(data_path(path).c_str(), &status) == 0);
    CHECK(static_cast<std::size_t>(status.st_size) == ledger_file_bytes);
    CHECK(status.st_blocks * 512 < 128 * 1024);
}

TEST_CASE_METHOD(LedgerFixture, "a ledger that cannot be used is refused with one line") {
    const auto refusal = [&] { return Ledger::open(path).error(); };
    const auto file = data_path(path);

    SECTION("missing") {
        std::filesystem::remove(file);
        CHECK_THAT(refusal(), Catch::Contains(file) && Catch::Contains("rdmaquota reload"));
    }
    SECTION("truncated") {
        std::filesystem::resize_file(file, 5000);
        CHECK_THAT(refusal(), Catch::Contains("it has 5000 bytes instead of"));
    }
    SECTION("foreign") {
        open().data().header.magic = 0x1234;
        CHECK_THAT(refusal(), Catch::Contains("does not begin like one"));
    }
    SECTION("another layout version") {
        open().data().header.layout_version = 9;
        CHECK_THAT(refusal(), Catch::Contains("layout version is 9, this rdmaquota needs 5"));
    }
    SECTION("other sizes") {
        open().data().header.owner_slots = 1 << 30;
        CHECK_THAT(refusal(), Catch::Contains("table sizes"));
    }
    SECTION("a directory in its place") {
        std::filesystem::remove(file);
        std::filesystem::create_directory(file);
        CHECK_FALSE(Ledger::open(path));
    }
    SECTION("a symbolic link in its place") {
        std::filesystem::rename(file, file + ".real");
        std::filesystem::create_symlink(file + ".real", file);
        CHECK_FALSE(Ledger::open(path));
    }
    CHECK(refusal().find('\n') == std::string::npos);
}

TEST_CASE("a ledger cannot be made where there is no directory") {
    const auto made = Ledger::create("/nonexistent/rdmaquota/default", LedgerAccess::everyone());
    REQUIRE_FALSE(made);
    CHECK_THAT(made.error(), Catch::Contains("/nonexistent/rdmaquota/default"));
}

TEST_CASE_METHOD(LedgerFixture, "ports have cells of their own, in no sum over devices") {
    auto ledger = open();
    auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const auto port = *ledger.device_index("rxe0/1");
    REQUIRE(port != device);
    Limits total;
    total.process_total = total.tenant_total = 2;
    const Limits none[1];
    CHECK_FALSE(ledger.charge(owner, port, qps(5), none));
    CHECK_FALSE(ledger.charge(owner, device, qps(2), &total));
    CHECK(ledger.room(owner, device, Resource::qp, total) == 0);
    const auto denial = ledger.charge(owner, device, qps(1), &total);
    REQUIRE(denial);
    CHECK(denial->proved);
    CHECK(denial->used == 2);
    CHECK(ledger.tenant_usage(port, Resource::qp) == 5);
    total.process_total = unlimited;
    const auto by_tenant = ledger.charge(owner, device, qps(1), &total);
    REQUIRE(by_tenant);
    CHECK(by_tenant->proved);
    CHECK(by_tenant->used == 2);
}
