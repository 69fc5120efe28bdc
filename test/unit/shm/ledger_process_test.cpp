// Several processes: death, inheritance, a full table. The processes are real and really killed.
#include <catch2/catch.hpp>

#include <csignal>
#include <functional>
#include <numeric>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/processes.hpp"
#include "test/unit/shm/ledger_fixture.hpp"
#include "test/waiting.hpp"

using namespace rdmaquota;

namespace {

// Runs `body` in a child, which says with `ready` that it has come so far and then sleeps.
class Child {
public:
    explicit Child(const std::function<void()>& body) {
        int ends[2];
        REQUIRE(pipe(ends) == 0);
        pid_ = fork_child();
        if (pid_ == 0) {
            body();
            if (write(ends[1], "r", 1) != 1) _exit(1);
            for (;;) pause();
        }
        close(ends[1]);
        char ready = 0;
        REQUIRE(read(ends[0], &ready, 1) == 1);
        close(ends[0]);
    }
    Child(const Child&) = delete;
    ~Child() { end(); }
    void signal(int number) const { signal_process(pid_, number); }
    void end() {
        if (pid_ <= 0) return;
        kill_child(std::exchange(pid_, 0));
    }

private:
    pid_t pid_ = 0;
};

void charge_in_child(const std::string& path, std::uint64_t count) {
    auto ledger = Ledger::open(path);
    auto owner = ledger->claim(identity_of_self());
    const Limits none[1];
    if (ledger->charge(*owner, *ledger->device_index("rxe0"), qps(count), none)) _exit(1);
    new Owner(std::move(*owner));
    new Ledger(std::move(*ledger));
}

}  // namespace

TEST_CASE_METHOD(LedgerFixture, "who joins again has the slot that its process has, until both have left it") {
    auto ledger = open(), again = open();
    auto owner = ledger.join(identity_of_self());
    auto second = again.join(identity_of_self());
    REQUIRE(owner);
    REQUIRE(second);
    CHECK(second->slot() == owner->slot());
    const auto device = *ledger.device_index("rxe0");
    Limits limit;
    limit.process = 2;
    CHECK_FALSE(ledger.charge(*owner, device, qps(1), &limit));
    CHECK_FALSE(again.charge(*second, device, qps(1), &limit));
    CHECK(again.charge(*second, device, qps(1), &limit));
    ledger.retire(*owner);
    CHECK(again.owners().size() == 1);
    CHECK(again.usage(second->slot(), device, Resource::qp) == 2);
    again.retire(*second);
    CHECK(again.owners().empty());
    CHECK(again.gate(device, Resource::qp) == 0);
}

TEST_CASE_METHOD(LedgerFixture, "a forked child, which has its parent's mappings, joins with a slot of its own") {
    auto ledger = open();
    const auto owner = ledger.join(identity_of_self());
    REQUIRE(owner);
    ChildProcess child([&] {
        const auto own = ledger.join(identity_of_self());
        _exit(own && own->slot() != owner->slot() ? 0 : 1);
    });
    CHECK(child.wait() == 0);
}

TEST_CASE_METHOD(LedgerFixture, "usage of a killed process is back at the next charge") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    Child child([&] { charge_in_child(path, 5); });
    CHECK(ledger.tenant_usage(device, Resource::qp) == 5);
    const auto limit = tenant_limit(5);
    const auto denial = ledger.charge(owner, device, qps(1), &limit);
    REQUIRE(denial);
    CHECK(denial->proved);
    child.end();
    CHECK_FALSE(ledger.charge(owner, device, qps(1), &limit));
    CHECK(ledger.gate(device, Resource::qp) == 1);
    CHECK(ledger.owners().size() == 1);
}

TEST_CASE_METHOD(LedgerFixture, "one that is dead in the last of all slots keeps no denial from being proved") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const auto limit = tenant_limit(1);
    REQUIRE_FALSE(ledger.charge(owner, device, qps(1), &limit));
    ledger.data().header.slots_used = owner_slots;
    for (int i = 0; i < 10; ++i) {
        ledger.data().states[owner_slots - 1] = SlotState::live;
        const auto denial = ledger.charge(owner, device, qps(1), &limit);
        REQUIRE(denial);
        CHECK(denial->proved);
    }
    CHECK(ledger.reap() == 1);
    CHECK(ledger.owners().size() == 1);
}

TEST_CASE_METHOD(LedgerFixture, "a stopped process keeps its usage and blocks nobody") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    Child child([&] { charge_in_child(path, 1); });
    child.signal(SIGSTOP);
    const auto limit = tenant_limit(2);
    CHECK(ledger.reap() == 0);
    CHECK_FALSE(ledger.charge(owner, device, qps(1), &limit));
    const auto denial = ledger.charge(owner, device, qps(1), &limit);
    REQUIRE(denial);
    CHECK(denial->proved);
}

TEST_CASE_METHOD(LedgerFixture, "the host program may close every descriptor") {
    auto ledger = open();
    Child child([&] {
        charge_in_child(path, 1);
        for (int fd = 3; fd < 1024; ++fd)
            if (fcntl(fd, F_GETFL) >= 0 && fcntl(fd, F_GETPIPE_SZ) < 0) close(fd);
    });
    CHECK(ledger.reap() == 0);
    CHECK(ledger.owners().size() == 1);
    child.end();
    CHECK(ledger.reap() == 1);
}

TEST_CASE_METHOD(LedgerFixture, "a forked child keeps what it inherited alive, and exec ends it") {
    auto ledger = open();
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    const pid_t parent = fork_child();
    if (parent == 0) {
        charge_in_child(path, 3);
        const pid_t grandchild = fork_child();
        if (grandchild == 0) {
            char go = 0;
            if (read(ends[0], &go, 1) == 1 && go == 'e') execl("/bin/sleep", "sleep", "2", nullptr);
            _exit(0);
        }
        if (write(ends[1], &grandchild, 0) < 0) _exit(1);
        _exit(0);  // the parent dies first
    }
    wait_for_child(parent);
    CHECK(ledger.reap() == 0);
    CHECK(ledger.tenant_usage(0, Resource::qp) == 3);
    const char go[] = {GENERATE('x', 'e')};
    REQUIRE(write(ends[1], go, 1) == 1);
    unsigned freed = 0;
    eventually([&] { return (freed = ledger.reap()) != 0; });
    CHECK(freed == 1);
    CHECK(ledger.tenant_usage(0, Resource::qp) == 0);
    CHECK(ledger.gate(0, Resource::qp) == 0);
    close(ends[0]);
    close(ends[1]);
}

TEST_CASE_METHOD(LedgerFixture, "an orderly end leaves the slot to a forked child that still uses it") {
    auto ledger = open();
    auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const Limits none[1];
    Child child([&] {
        if (ledger.charge(owner, device, qps(2), none)) _exit(1);
    });
    ledger.retire(owner);
    CHECK(ledger.tenant_usage(device, Resource::qp) == 2);
    CHECK(ledger.gate(device, Resource::qp) == 2);
    child.end();
    CHECK(ledger.reap() == 1);
    CHECK(ledger.gate(device, Resource::qp) == 0);
}

TEST_CASE_METHOD(LedgerFixture, "an orderly end frees the slot at once") {
    auto ledger = open();
    auto owner = claim(ledger);
    const Limits none[1];
    REQUIRE_FALSE(ledger.charge(owner, *ledger.device_index("rxe0"), qps(2), none));
    ledger.retire(owner);
    CHECK(ledger.owners().empty());
    CHECK(ledger.gate(0, Resource::qp) == 0);
    CHECK(claim(ledger).slot() == 0);
}

TEST_CASE_METHOD(LedgerFixture, "a table full of the living refuses, full of the dead makes room") {
    auto ledger = open();
    {
        std::vector<Owner> owners;
        for (std::uint32_t i = 0; i < owner_slots; ++i) owners.push_back(claim(ledger));
        const auto refused = ledger.claim(identity_of_self());
        REQUIRE_FALSE(refused);
        CHECK_THAT(refused.error(), Catch::Contains("all 4096 owner slots are taken"));
    }
    // Dropped without retiring, as by 4,096 deaths.
    CHECK(ledger.owners().size() == owner_slots);
    const auto owner = claim(ledger);
    CHECK(ledger.owners().size() == owner_slots - owners_per_lock_file + 1);
    CHECK(ledger.reap() == owner_slots - owners_per_lock_file);
    CHECK(ledger.owners().size() == 1);
}

TEST_CASE_METHOD(LedgerFixture, "processes killed at random leave the accounts true") {
    auto ledger = open();
    const auto device = *ledger.device_index("rxe0");
    for (int round = 0; round < 100; ++round) {
        const pid_t child = fork_child();
        if (child == 0) {
            auto own = Ledger::open(path);
            auto owner = own->claim(identity_of_self());
            const Limits none[2];
            const auto amounts = Amounts{}.add(Resource::qp, 1).add(Resource::send_wr, 7);
            for (;;) {
                own->charge(*owner, device, amounts, none);
                own->charge(*owner, device, amounts, none);
                own->uncharge(*owner, device, amounts);
                own->uncharge(*owner, device, amounts);
            }
        }
        usleep(static_cast<useconds_t>(500 + round * 37 % 1000));
        kill_child(child);
    }
    const auto owner = claim(ledger);
    const auto limit = tenant_limit(1);
    CHECK_FALSE(ledger.charge(owner, device, qps(1), &limit));
    ledger.uncharge(owner, device, qps(1));
    ledger.reap();
    for (const auto r : {Resource::qp, Resource::send_wr}) {
        CHECK(ledger.reconcile(device, r) != Ledger::View::not_quiescent);
        CHECK(ledger.gate(device, r) == 0);
        CHECK(ledger.tenant_usage(device, r) == 0);
    }
}

TEST_CASE_METHOD(LedgerFixture, "identity names this process") {
    const auto self = identity_of_self();
    CHECK(self.pid == static_cast<std::uint32_t>(getpid()));
    CHECK(self.comm == "unit_tests");
    CHECK(self.start_time > 0);
}

TEST_CASE_METHOD(LedgerFixture, "what a process did is kept for its device when it ends") {
    auto ledger = open();
    const auto device = *ledger.device_index("rxe0");
    auto owner = claim(ledger);
    ledger.count_cq_event(owner, device);
    ledger.count_qp_change(owner, device, 1, false);
    ledger.count_qp_change(owner, device, 2, true);
    ledger.count_qp_change(owner, device, 7, false);  // no state
    CHECK(ledger.activity(owner.slot(), device).qp_to[1] == 1);
    CHECK(ledger.activity(owner.slot(), device).qp_failed[2] == 1);
    {
        Child child([&] {
            auto its = ledger.claim(identity_of_self());
            for (int i = 0; i < 5; ++i) ledger.count_cq_event(*its, device);
            new Owner(std::move(*its));
        });
        CHECK(ledger.tenant_activity(device).cq_events == 6);
    }
    CHECK(ledger.reap() == 1);
    CHECK(ledger.tenant_activity(device).cq_events == 6);

    const auto slot = owner.slot();
    ledger.retire(owner);
    CHECK(ledger.activity(slot, device).cq_events == 0);
    const auto all = ledger.tenant_activity(device);
    CHECK(all.cq_events == 6);
    CHECK(all.qp_to[1] == 1);
    CHECK(all.qp_failed[2] == 1);
    CHECK(std::accumulate(std::begin(all.qp_to), std::end(all.qp_to), 0ULL) == 1);
}

TEST_CASE_METHOD(LedgerFixture, "counts stop at their largest value") {
    auto ledger = open();
    const auto device = *ledger.device_index("rxe0");
    auto owner = claim(ledger);
    ledger.data().activity[device][owner.slot()].qp_to[3] = UINT32_MAX - 1;
    ledger.count_qp_change(owner, device, 3, false);
    ledger.count_qp_change(owner, device, 3, false);
    CHECK(ledger.activity(owner.slot(), device).qp_to[3] == UINT32_MAX);
    CHECK(ledger.activity(owner.slot(), device).qp_to[4] == 0);
}

TEST_CASE_METHOD(LedgerFixture, "who has a ledger that was moved away is held to it still") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const Limits limit[] = {tenant_limit(2)};
    REQUIRE_FALSE(ledger.charge(owner, device, qps(2), limit));
    REQUIRE(Ledger::replace(path));
    CHECK(ledger.charge(owner, device, qps(1), limit));
    CHECK(ledger.reap() == 0);
    CHECK(ledger.usage(owner.slot(), device, Resource::qp) == 2);
}
