// Threads of one process that do everything to one ledger at once, for ThreadSanitizer to watch.
#include <catch2/catch.hpp>

#include <thread>
#include <vector>

#include "test/unit/shm/ledger_fixture.hpp"

using namespace rdmaquota;

namespace {

// One thread's share; all of them use the same Ledger object.
void use(Ledger& ledger, unsigned number) {
    const auto device = *ledger.device_index(number % 2 ? "rxe0" : "rxe1");
    const auto limit = tenant_limit(2);
    Event event{};
    event.kind = EventKind::denied;
    event.pid = number;
    for (int round = 0; round < 60; ++round) {
        auto owner = ledger.claim({number, number, 1, "thread"});
        if (!owner) continue;
        for (int i = 0; i < 5; ++i) {
            if (ledger.charge(*owner, device, qps(1), &limit)) {
                ledger.record(event);
                continue;
            }
            ledger.uncharge(*owner, device, qps(1));
        }
        ledger.reconcile(device, Resource::qp);
        ledger.events();
        ledger.owners();
        ledger.devices();
        ledger.tenant_usage(device, Resource::qp);
        // Every fourth leaves its slot to be reaped.
        if (round % 4) ledger.retire(*owner);
    }
    ledger.reap();
}

}  // namespace

TEST_CASE_METHOD(LedgerFixture, "threads do everything at once, and the accounts are true afterwards") {
    auto ledger = open();
    std::vector<std::thread> threads;
    for (unsigned number = 0; number < 4; ++number) threads.emplace_back([&, number] { use(ledger, number); });
    for (auto& thread : threads) thread.join();
    ledger.reap();
    CHECK(ledger.owners().empty());
    for (const std::uint32_t device : {0U, 1U}) {
        CHECK(ledger.reconcile(device, Resource::qp) != Ledger::View::not_quiescent);
        CHECK(ledger.gate(device, Resource::qp) == 0);
    }
}
