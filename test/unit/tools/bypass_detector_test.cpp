#include <algorithm>
#include <ctime>
#include <memory>

#include <catch2/catch.hpp>

#include "shm/atomic.hpp"
#include "test/unit/shm/ledger_fixture.hpp"
#include "test/unit/tools/slot_child.hpp"
#include "tools/rdmaquotad/bypass/bypass_detector.hpp"
#include "tools/rdmaquotad/node/gate_corrector.hpp"

using namespace rdmaquota;

namespace {

constexpr auto device = "rxe0";

KernelUse use_of(std::uint32_t pid, std::uint64_t pds) {
    KernelUse use;
    use.pid = use.opener = pid;
    use.device = device;
    use.live[index(Resource::hca_handle)] = use.created[index(Resource::hca_handle)] = 1;
    use.live[index(Resource::pd)] = use.created[index(Resource::pd)] = pds;
    use.live[index(Resource::hca_object)] = use.created[index(Resource::hca_object)] = pds;
    return use;
}

Amounts charge_of(std::uint64_t pds) {
    return Amounts{}.add(Resource::hca_handle, 1).add(Resource::pd, pds).add(Resource::hca_object, pds);
}

constexpr unsigned minute = 60'000 / BypassDetector::look_interval_ms;

struct Detecting : LedgerFixture {
    Ledger ledger = open();
    LedgerCopy copy;
    BypassDetector detector;
    std::vector<KernelUse> uses;
    std::set<std::string> devices{device};
    SlotHolders holders;
    Mode mode = Mode::enforce;  // of both tenants
    bool fresh = true;          // the second ledger was read at this look
    std::string second_path;    // of the ledger of another tenant, if there is one
    LedgerCopy second;
    const std::uint32_t own_pid = identity_of_self().pid;
    std::chrono::steady_clock::time_point now;

    // 200 ms after the look before it.
    std::vector<BypassReport> look(unsigned times = 1) {
        std::vector<BypassReport> all;
        for (unsigned i = 0; i < times; ++i) {
            now += std::chrono::milliseconds(BypassDetector::look_interval_ms);
            for (auto& report : detector.look(observe())) all.push_back(std::move(report));
        }
        return all;
    }

    Observation observe() {
        REQUIRE(copy.read(path));
        slots = slot_uses(copy, devices);
        Observation observation{now, uses, {}, true, 0, {{"default", 1, true, slots}}, {}, {}, true,
                                [](std::uint32_t) { return "default"; },
                                [this](const std::string&) { return mode != Mode::off; }};
        observation.known.fill(true);
        std::map<std::uint32_t, std::string> paths{{1, path}};
        if (!second_path.empty()) {
            if (fresh) {
                REQUIRE(second.read(second_path));
                second_slots = slot_uses(second, devices);
            }
            observation.ledgers.push_back({"physics", 2, fresh, second_slots});
            paths[2] = second_path;
        }
        holders.follow(paths);
        observation.held = holders.find(openings_by_process(uses), copy.claims() + second.claims());
        observation.unread = holders.unread();
        return observation;
    }

private:
    std::vector<SlotUse> slots, second_slots;
};

std::vector<std::string> resources_of(const BypassReport& report) {
    std::vector<std::string> names;
    for (const auto& amount : report.difference.amounts) names.emplace_back(info(amount.resource).name);
    return names;
}

double cpu_seconds() {
    timespec now{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace

TEST_CASE_METHOD(Detecting, "a process without a slot is reported at the second look, and its end once it is gone") {
    uses = {use_of(own_pid, 5)};
    CHECK(look().empty());
    const auto reports = look();
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].kind == BypassReport::Kind::bypass);
    CHECK(reports[0].difference.pid == own_pid);
    CHECK_FALSE(reports[0].difference.has_slot);
    CHECK(resources_of(reports[0]) == std::vector<std::string>{"hca_object", "hca_handle", "pd"});
    CHECK(detector.bypasses().size() == 1);
    uses.clear();
    const auto ended = look(20);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == BypassReport::Kind::bypass_ended);
}

TEST_CASE_METHOD(Detecting, "a slot is of the process that holds it, whatever pid and start time it says") {
    const Identity first_of_its_namespace{1, 0, 4711, "init"};
    const SlotChild one(path, first_of_its_namespace, device, charge_of(3));
    const SlotChild other(path, first_of_its_namespace, device, charge_of(5));
    uses = {use_of(one.pid(), 3), use_of(other.pid(), 5)};
    CHECK(look(20).empty());
}

TEST_CASE_METHOD(Detecting, "a process is not taken for another that its slot names") {
    const auto named = identity_of_self();
    const SlotChild one(path, named, device, charge_of(3));
    const auto own = claim(ledger);
    const Limits none[Amounts::capacity];
    REQUIRE_FALSE(ledger.charge(own, *ledger.device_index(device), charge_of(5), none));
    uses = {use_of(one.pid(), 3), use_of(named.pid, 5)};
    CHECK(look(20).empty());
}

TEST_CASE_METHOD(Detecting, "all that a process is charged too much for is reported at once") {
    const auto charged = Amounts{}.add(Resource::hca_handle, 1).add(Resource::pd, 6).add(Resource::hca_object, 9);
    const SlotChild child(path, {77, 0, 4711, "leaker"}, device, charged);
    // The kernel is read before the ledger: here when the process had its PDs only. Later it has three QPs more, and
    // three PDs less than it is charged for. So the sum differs in all looks from the first on, the PDs from the second.
    uses = {use_of(child.pid(), 6)};
    REQUIRE(look().empty());
    uses[0].live[index(Resource::pd)] = 3;
    const auto reports = look(40);
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].kind == BypassReport::Kind::leak);
    CHECK(resources_of(reports[0]) == std::vector<std::string>{"hca_object", "pd"});
}

// The kernel drops a process's locks before it closes its files, so that its slot may be gone while it has objects.
TEST_CASE_METHOD(Detecting, "what a killed process's slot had is not held against it while its files are being closed") {
    auto child = std::make_unique<SlotChild>(path, Identity{77, 0, 4711, "killed"}, device, charge_of(5));
    uses = {use_of(child->pid(), 5)};
    CHECK(look(3).empty());
    child.reset();
    REQUIRE(ledger.reap() == 1);
    CHECK(look(minute - 1).empty());
    const auto reports = look(10);
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].kind == BypassReport::Kind::bypass);
}

TEST_CASE_METHOD(Detecting, "nor what it made since the last look, or before the first") {
    {
        const SlotChild child(path, {77, 0, 4711, "killed"}, device, charge_of(5));
        uses = {use_of(child.pid(), 5)};
    }
    REQUIRE(ledger.reap() == 1);
    CHECK(look(minute - 1).empty());
}

TEST_CASE_METHOD(Detecting, "a slot that was claimed again is not taken for that of its killed owner") {
    auto killed = std::make_unique<SlotChild>(path, Identity{77, 0, 4711, "killed"}, device, charge_of(5));
    uses = {use_of(killed->pid(), 5)};
    CHECK(look(3).empty());
    killed.reset();
    const SlotChild next(path, {78, 0, 4712, "next"}, device, charge_of(1));
    REQUIRE(ledger.owners().size() == 1);
    uses.push_back(use_of(next.pid(), 1));
    CHECK(look(20).empty());
}

TEST_CASE_METHOD(Detecting, "what a process leaves to its child is the slot's that they share") {
    int end[2];  // of the child
    REQUIRE(pipe(end) == 0);
    ChildProcess parent([&] {
        auto own = Ledger::open(path);
        const auto owner = own->claim(identity_of_self());
        const Limits none[Amounts::capacity];
        if (!owner || own->charge(*owner, *own->device_index(device), charge_of(5), none)) _exit(1);
        if (fork_child() != 0) _exit(0);
        close(end[1]);
        char byte;
        _exit(read(end[0], &byte, 1) == 0 ? 0 : 1);
    });
    uses = {use_of(static_cast<std::uint32_t>(parent.pid()), 5)};
    REQUIRE(parent.wait() == 0);
    REQUIRE(ledger.reap() == 0);
    CHECK(look(minute + 20).empty());
    close(end[0]);
    close(end[1]);
}

TEST_CASE_METHOD(Detecting, "a process that never rests is reported all the same") {
    const SlotChild child(path, {77, 0, 4711, "busy"}, device, charge_of(1));
    uses = {use_of(child.pid(), 5)};
    std::vector<BypassReport> reports;
    for (unsigned i = 0; i < 40 && reports.empty(); ++i) {
        ++uses[0].created[index(Resource::mr)];
        ++uses[0].destroyed[index(Resource::mr)];
        reports = look();
    }
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].kind == BypassReport::Kind::bypass);
}

namespace {

// What a tenant can write into its ledger to keep the sidecar busy: each owner slot taken and full of figures, every
// device entry taken, all gates wrong, and an operation that never ends.
struct Garbage : Detecting {
    Garbage() {
        auto& data = ledger.data();
        for (std::uint32_t i = 0; i < device_slots; ++i) REQUIRE(ledger.device_index("rxe" + std::to_string(i)));
        std::uint64_t noise = 1;
        for (std::uint32_t slot = 0; slot < owner_slots; ++slot) {
            store(data.states[slot], SlotState::live);
            for (auto& of_device : data.usage)
                for (auto& word : of_device[slot]) word = (noise = noise * 6364136223846793005 + 1442695040888963407) >> 20;
        }
        for (auto& row : data.gates)
            for (auto& word : row) word = 1;
        data.slots[7].ops = ops_begin;
        store(data.header.slots_used, std::uint64_t{owner_slots});
    }
};

}  // namespace

TEST_CASE_METHOD(Garbage, "a ledger full of garbage costs each look little and hides no bypass") {
    uses = {use_of(own_pid, 5)};
    GateCorrector gates;
    constexpr unsigned looks = 8;
    bool reported = false;
    const auto begin = cpu_seconds();
    for (unsigned i = 0; i < looks; ++i) {
        for (const auto& report : look()) reported |= report.difference.pid == own_pid;
        CHECK(gates.pass(ledger, copy, devices) == 0);
    }
    CHECK(cpu_seconds() - begin < looks * 0.25);
    CHECK(reported);
}

TEST_CASE_METHOD(Detecting, "a pass reconciles a few gates, and the next ones the others") {
    GateCorrector gates;
    for (const auto* name : {device, "rxe0/1"})
        for (std::size_t r = 0; r < resource_count; ++r)
            store(ledger.data().gates[*ledger.device_index(name)][r], std::uint64_t{3});
    unsigned corrected = 0;
    for (unsigned i = 0; i < 20; ++i) {
        REQUIRE(copy.read(path));
        const auto in_pass = gates.pass(ledger, copy, devices);
        CHECK(in_pass <= GateCorrector::most_reconciled);
        corrected += in_pass;
    }
    CHECK(corrected == 2 * resource_count);
}

TEST_CASE_METHOD(Detecting, "a gate that stays too high is corrected, of devices that the machine has only") {
    GateCorrector gates;
    for (const auto* name : {device, "rxe0/1", "invented"})
        store(ledger.data().gates[*ledger.device_index(name)][index(Resource::qp)], std::uint64_t{3});
    unsigned corrected = 0;
    for (unsigned i = 0; i < 12; ++i) {
        REQUIRE(copy.read(path));
        corrected += gates.pass(ledger, copy, devices);
    }
    CHECK(corrected == 2);
    CHECK(ledger.gate(*ledger.device_index(device), Resource::qp) == 0);
    CHECK(ledger.gate(*ledger.device_index("rxe0/1"), Resource::qp) == 0);
    CHECK(ledger.gate(*ledger.device_index("invented"), Resource::qp) == 3);
}

namespace {

// A process with slots in two tenants, as one that moved between them.
struct InTwoTenants : Detecting {
    Ledger physics = make();
    Owner in_default = claim(ledger), in_physics = claim(physics);

    Ledger make() {
        second_path = directory / "physics";
        REQUIRE(Ledger::create(second_path, {}));
        auto ledger = Ledger::open(second_path);
        REQUIRE(ledger);
        return std::move(*ledger);
    }
    static void charge(Ledger& ledger, const Owner& owner, std::uint64_t pds) {
        const Limits none[Amounts::capacity];
        REQUIRE_FALSE(ledger.charge(owner, *ledger.device_index(device),
                                    Amounts{}.add(Resource::pd, pds).add(Resource::hca_object, pds), none));
    }
};

}  // namespace

TEST_CASE_METHOD(InTwoTenants, "what a process has in several tenants is added up") {
    charge(ledger, in_default, 2);
    charge(physics, in_physics, 3);
    uses = {use_of(own_pid, 5)};
    uses[0].live[index(Resource::hca_handle)] = 0;
    CHECK(look(20).empty());
    uses[0].live[index(Resource::pd)] = 9;
    const auto reports = look(20);
    REQUIRE(reports.size() == 1);
    CHECK(resources_of(reports[0]) == std::vector<std::string>{"pd"});
    CHECK(reports[0].difference.has_slot);
    CHECK(reports[0].difference.amounts[0].ledger == 5);
}

TEST_CASE_METHOD(InTwoTenants, "nobody is judged by a ledger that was not read") {
    charge(physics, in_physics, 3);
    uses = {use_of(own_pid, 9)};
    fresh = false;
    CHECK(look(20).empty());
    fresh = true;
    const auto reports = look(20);
    REQUIRE(reports.size() == 1);
    CHECK(reports[0].kind == BypassReport::Kind::bypass);
}

TEST_CASE_METHOD(Detecting, "nor who claimed a slot since a ledger was read") {
    second_path = directory / "physics";
    REQUIRE(Ledger::create(second_path, {}));
    REQUIRE(look().empty());
    fresh = false;
    const SlotChild child(second_path, {4711, 0, 1, "late"}, device, charge_of(2));
    uses = {use_of(child.pid(), 2)};
    CHECK(look(2).empty());
    fresh = true;
    CHECK(look(20).empty());
}

TEST_CASE_METHOD(Detecting, "nor of whom it is not known whether it holds a slot") {
    uses = {use_of(own_pid, 5)};
    auto observation = observe();
    observation.unread = {own_pid};
    for (int i = 0; i < 20; ++i) CHECK(detector.look(observation).empty());
    observation.unread.clear();
    CHECK(detector.look(observation).empty());
    CHECK(detector.look(observation).size() == 1);
}

TEST_CASE_METHOD(Detecting, "nor in a tenant that is not charged, and what was reported there ends") {
    uses = {use_of(own_pid, 5)};
    mode = Mode::off;
    CHECK(look(20).empty());
    mode = Mode::enforce;
    REQUIRE(look(3).size() == 1);
    mode = Mode::off;
    const auto ended = look(40);
    REQUIRE(ended.size() == 1);
    CHECK(ended[0].kind == BypassReport::Kind::bypass_ended);
}
