// Programs of the provider from before tenants share the limits of `default`.
#include "tools/common/upgrade/balance.hpp"

#include <thread>

#include "test/processes.hpp"
#include "test/unit/tools/old_node.hpp"
#include "tools/common/shares/divide.hpp"

#include <catch2/catch.hpp>

using namespace rdmaquota;
using namespace rdmaquota::upgrade;

namespace {

// The most that old and new programs can have together.
std::uint64_t most(OldNode& node, const std::string& device) {
    return std::max(node.limit_of(device), node.gate(device) & old_gate_amount) + node.effective(device);
}

void balance(const OldNode& node) { REQUIRE(balance_with_old(node.directory.path())); }

}  // namespace

TEST_CASE("without old files, or new ones, there is nothing to balance", "[upgrade]") {
    const TemporaryDirectory empty;
    CHECK(balance_with_old(empty.path()));
    OldNode node;
    balance(node);
    CHECK(node.has_old_files());
    node.publish({{"*", 10}});
    node.policy->layout_version = 2;
    balance(node);
    CHECK(node.has_old_files());
}

TEST_CASE("old programs keep what they have, new ones get the rest", "[upgrade]") {
    OldNode node;
    OldProgram program(node, 0);
    REQUIRE(program.charge_up_to("rxe0", 4) == 4);
    node.publish({{"*", 10}});
    balance(node);
    CHECK(node.limit_of("rxe0") == 4);
    CHECK(node.effective("rxe0") == 6);
    CHECK(node.effective("rxe1") == 10);
    CHECK(node.reason("rxe0") == Reason::upgrade);
    CHECK(std::string(node.segment().origin(Scope::tenant, "rxe0", Resource::qp)->why) ==
          "4 are used by programs of an older rdmaquota");
    CHECK_FALSE(program.charge("rxe0"));
    CHECK_FALSE(program.charge("rxe1"));  // whose entry in the ledger is new
    SECTION("what they give back is the new ones'") {
        program.uncharge("rxe0");
        balance(node);
        CHECK(node.limit_of("rxe0") == 3);
        CHECK(node.effective("rxe0") == 7);
        CHECK_FALSE(program.charge("rxe0"));
    }
    SECTION("nothing changes where nothing has changed") {
        const auto generation = node.segment().generation();
        balance(node);
        CHECK(node.segment().generation() == generation);
    }
}

TEST_CASE("old programs keep what they have of what the node may use, too", "[upgrade]") {
    OldNode node(unlimited);
    OldProgram program(node, 0);
    REQUIRE(program.charge_up_to("rxe0", 4) == 4);
    node.publish({});
    const LimitsWriter::Grant grants[] = {{"rxe0", Resource::qp, 7}, {"*", Resource::qp, 7}};
    REQUIRE(LimitsWriter::open(node.limits())->grant(grants, "its share"));
    balance(node);
    CHECK_FALSE(program.charge("rxe0"));
    CHECK_FALSE(program.charge("rxe1"));
    CHECK(node.effective("rxe0") == 7);  // whoever moves shares takes account of the 4
    const auto uses = older_uses(node.directory.path());
    REQUIRE(uses.size() == 1);
    CHECK(uses[0].device == "rxe0");
    CHECK(uses[0].resource == Resource::qp);
    CHECK(uses[0].amount == 4);
}

TEST_CASE("what an ended old process left charged is the new ones'", "[upgrade]") {
    OldNode node;
    const OldProgram alive(node, 0);
    { REQUIRE(OldProgram(node, 1).charge_up_to("rxe0", 4) == 4); }
    node.publish({{"*", 10}});
    balance(node);
    CHECK(node.effective("rxe0") == 10);
    CHECK(node.limit_of("rxe0") == 0);
}

TEST_CASE("once the last old program has ended the old files are gone", "[upgrade]") {
    OldNode node;
    node.publish({{"*", 10}});
    {
        OldProgram program(node, 0);
        REQUIRE(program.charge_up_to("rxe0", 4) == 4);
        balance(node);
        REQUIRE(node.effective("rxe0") == 6);
    }
    balance(node);
    CHECK(node.effective("rxe0") == 10);
    CHECK(node.reason("rxe0") == Reason::configured);
    CHECK_FALSE(node.has_old_files());
    CHECK(load(node.policy->superseded) == 1);
    CHECK(std::filesystem::exists(node.limits()));
}

TEST_CASE("ports, sums and devices with a limit of their own are shared, too", "[upgrade]") {
    OldNode node(100);
    OldProgram program(node, 0);
    REQUIRE(program.charge_up_to("rxe0", 4) == 4);
    REQUIRE(program.charge_up_to("rxe1", 3) == 3);
    REQUIRE(program.charge_up_to("rxe0/1", 2) == 2);
    node.publish({{"rxe0", 10}, {"rxe0/1", 5}, {"total", 20}, {"rxe2", 8}});
    balance(node);
    CHECK(node.effective("rxe0") == 6);
    CHECK(node.effective("rxe0/1") == 3);
    CHECK(node.effective("total") == 13);
    CHECK(node.effective("rxe1") == unlimited);
    CHECK(node.effective("rxe2") == 8);
    CHECK(node.limit_of("rxe0/1") == 2);
    CHECK(node.limit_of("total") == 7);
    CHECK(node.limit_of("rxe2") == 0);
    CHECK(node.limit_of("rxe1") == 100);  // nothing bounds it now
}

TEST_CASE("a device that is unlimited now stays what it was for old programs", "[upgrade]") {
    OldNode node(7);
    OldProgram program(node, 0);
    REQUIRE(program.charge_up_to("rxe0", 4) == 4);
    node.publish({{"*", 10}, {"rxe0", unlimited}});
    balance(node);
    CHECK(node.limit_of("rxe0") == 7);
    CHECK(node.effective("rxe0") == unlimited);
    CHECK(node.limit_of("rxe1") == 0);
}

TEST_CASE("old programs above the limit leave nothing", "[upgrade]") {
    OldNode node(20);
    OldProgram program(node, 0);
    REQUIRE(program.charge_up_to("rxe0", 12) == 12);
    node.publish({{"*", 10}});
    balance(node);
    CHECK(node.limit_of("rxe0") == 10);
    CHECK(node.effective("rxe0") == 0);
}

TEST_CASE("without room for a row new programs wait for the old ones' end", "[upgrade]") {
    OldNode node;
    for (auto& row : node.policy->tenant) row.device[0] = 'x';
    std::strcpy(node.policy->tenant[0].device, "rxe0");
    OldProgram program(node, 0);
    REQUIRE(program.charge("rxe1"));
    node.publish({{"*", 10}});
    balance(node);
    CHECK(node.effective("rxe1") == 0);
}

TEST_CASE("the old programs' mode is that of default", "[upgrade]") {
    OldNode node;
    const OldProgram program(node, 0);
    node.policy->mode = static_cast<std::uint32_t>(Mode::audit);
    node.publish({{"*", 10}});
    balance(node);
    CHECK(old_mode(*node.policy) == Mode::enforce);
}

TEST_CASE("a lower limit of another reason stays", "[upgrade]") {
    OldNode node;
    OldProgram program(node, 0);
    REQUIRE(program.charge_up_to("rxe0", 4) == 4);
    node.publish({{"*", 10}});
    const auto hold = [&](std::uint64_t limit) {
        REQUIRE(LimitsWriter::open(node.limits())->hold(Scope::tenant, "rxe0", Resource::qp, limit, Reason::rule, "x"));
    };
    hold(5);
    balance(node);
    CHECK(node.effective("rxe0") == 5);
    CHECK(node.reason("rxe0") == Reason::rule);
    hold(9);
    balance(node);
    CHECK(node.effective("rxe0") == 6);
    CHECK(node.reason("rxe0") == Reason::upgrade);
    hold(8);
    CHECK(node.effective("rxe0") == 6);
}

TEST_CASE("no change of limits opens a gap", "[upgrade]") {
    OldNode node;
    OldProgram program(node, 0);
    REQUIRE(program.charge_up_to("rxe0", 4) == 4);
    node.publish({{"*", 10}});
    balance(node);
    const auto set = [&](const char* device, std::uint64_t limit) {
        const Setting setting{Resource::qp, limit};
        REQUIRE(LimitsWriter::open(node.limits())->set(Scope::tenant, device, std::span(&setting, 1)));
    };
    SECTION("a publication that raises") {
        node.publish({{"*", 20}});
        CHECK(most(node, "rxe0") <= 20);
    }
    SECTION("one that lowers") {
        node.publish({{"*", 7}});
        CHECK(most(node, "rxe0") <= 7);
    }
    SECTION("one for the device") {
        node.publish({{"rxe0", 7}});
        CHECK(most(node, "rxe0") <= 7);
    }
    SECTION("a set for all devices") {
        set("*", 7);
        CHECK(most(node, "rxe0") <= 7);
    }
    SECTION("a set for the device") {
        set("rxe0", 7);
        CHECK(most(node, "rxe0") <= 7);
    }
    SECTION("and an unset") {
        set("rxe0", 20);
        balance(node);
        REQUIRE(node.effective("rxe0") == 16);
        const auto qp = Resource::qp;
        REQUIRE(LimitsWriter::open(node.limits())->unset(Scope::tenant, "rxe0", std::span(&qp, 1)));
        CHECK(most(node, "rxe0") <= 10);
    }
    const auto configured = node.segment().configured(Scope::tenant, "rxe0", Resource::qp);
    balance(node);
    CHECK(node.effective("rxe0") == configured - 4);
}

TEST_CASE("a balance that is killed leaves no gap, and the next one completes it", "[upgrade]") {
    for (int steps = 1;; ++steps) {
        OldNode node;
        OldProgram program(node, 0);
        REQUIRE(program.charge_up_to("rxe0", 6) == 6);
        REQUIRE(program.charge_up_to("rxe1", 2) == 2);
        node.publish({{"*", 10}, {"total", 15}});
        balance(node);
        program.uncharge("rxe0");
        program.uncharge("rxe0");
        program.uncharge("rxe1");
        node.publish({{"*", 9}, {"total", 16}});
        ChildProcess child([&] {
            int made = 0;
            (void)balance_with_old(node.directory.path(), [&](std::string_view) {
                if (++made == steps) signal_process(getpid(), SIGKILL);
            });
        });
        const bool killed = WIFSIGNALED(child.wait());
        INFO("killed before step " << steps);
        CHECK(most(node, "rxe0") <= 9);
        CHECK(most(node, "rxe1") <= 9);
        CHECK(node.limit_of("total") + node.effective("total") <= 16);
        CHECK_FALSE(program.charge("rxe2"));
        balance(node);
        CHECK(node.effective("rxe0") == 5);
        CHECK(node.effective("total") == 11);
        if (!killed) break;
    }
}

TEST_CASE("a killed removal is completed", "[upgrade]") {
    for (const std::string_view where : {"release", "remove", "remove policy"}) {
        OldNode node;
        node.publish({{"*", 10}});
        {
            OldProgram program(node, 0);
            REQUIRE(program.charge_up_to("rxe0", 4) == 4);
            balance(node);
        }
        ChildProcess child([&] {
            (void)balance_with_old(node.directory.path(), [&](std::string_view step) {
                if (step == where) signal_process(getpid(), SIGKILL);
            });
        });
        REQUIRE(WIFSIGNALED(child.wait()));
        CHECK(node.limit_of("rxe0") == 0);
        balance(node);
        CHECK(node.effective("rxe0") == 10);
        CHECK_FALSE(node.has_old_files());
    }
}

TEST_CASE("a policy that a killed reload replaced is told to its readers", "[upgrade]") {
    OldNode node;
    const OldProgram program(node, 0);
    const auto path = old_policy_path(node.directory.path());
    std::filesystem::rename(path, path + ".old");
    std::filesystem::copy_file(path + ".old", path);
    node.publish({{"*", 10}});
    balance(node);
    CHECK(load(node.policy->superseded) == 1);
    CHECK(load(node.policy->generation) == old_lost_generation);
    CHECK_FALSE(std::filesystem::exists(path + ".old"));
}

// As a charger that read the limits before they were lowered.
TEST_CASE("a charge by the limits from before is in the old share, or is backed out", "[upgrade]") {
    OldNode node;
    OldProgram program(node, 0);
    REQUIRE(program.charge_up_to("rxe0", 4) == 4);
    node.publish({{"*", 10}});
    const auto generation = load(node.policy->generation);
    REQUIRE(balance_with_old(node.directory.path(), [&](std::string_view step) {
        if (step != "publish") return;
        REQUIRE(node.limit_of("rxe0") == 4);
        node.limit("rxe0", Resource::qp, 10);
        CHECK(program.charge("rxe0"));
        node.limit("rxe0", Resource::qp, 4);
    }));
    CHECK(node.effective("rxe0") == 5);
    CHECK(load(node.policy->generation) != generation);
    CHECK_FALSE(program.charge("rxe0"));
}

// Old and new chargers go on while the limits are balanced. Each counts what it has once its charge holds, and takes
// that off before it uncharges.
TEST_CASE("old and new programs never have more than the limit together", "[upgrade]") {
    constexpr int limit = 8;
    OldNode node(limit);
    node.publish({{"*", limit}});
    std::atomic<int> held{0}, highest{0};
    std::atomic<bool> ends{false};
    const auto took = [&] {
        const int now = ++held;
        for (int seen = highest; seen < now && !highest.compare_exchange_weak(seen, now);) {
        }
    };
    OldProgram first(node, 0), second(node, 1);
    REQUIRE(first.charge_up_to("rxe0", 5) == 5);
    held = highest = 5;
    balance(node);
    const auto old_thread = [&](OldProgram& program, int have) {
        for (unsigned i = 1; !ends; ++i) {
            if (program.charge("rxe0")) ++have, took();
            if (have > 0 && i % 7 == 0) --have, --held, program.uncharge("rxe0");
        }
    };
    std::uint64_t gate = 0;
    const auto new_thread = [&] {
        int have = 0;
        for (auto limits = node.segment(); !ends;) {
            if (limits.superseded()) limits = node.segment();
            const auto generation = limits.generation();
            const auto bound = limits.limit(Scope::tenant, "rxe0", Resource::qp);
            auto word = load(gate);
            const bool fits = word + 1 <= bound && compare_exchange(gate, word, word + 1);
            if (fits && limits.generation() == generation && !limits.superseded())
                ++have, took();
            else if (fits)
                subtract(gate, 1);
            if (have > 2 || (have > 0 && !fits)) --have, --held, subtract(gate, 1);
        }
    };
    std::thread threads[] = {std::thread(old_thread, std::ref(first), 5), std::thread(old_thread, std::ref(second), 0),
                             std::thread(new_thread), std::thread(new_thread)};
    for (int i = 0; i < 300; ++i) balance(node);
    // Old programs that may charge again, as if the upgrade began anew.
    for (int i = 0; i < 300; ++i) {
        {
            auto writer = LimitsWriter::open(node.limits());
            REQUIRE(writer->hold(Scope::tenant, "rxe0", Resource::qp, 0, Reason::upgrade, "test"));
        }
        while (load(gate) != 0) std::this_thread::yield();
        for (auto& row : node.policy->tenant)
            if (std::string_view(row.device) == "rxe0" || std::string_view(row.device) == "*")
                store(row.limits[index(Resource::qp)], std::uint64_t{limit});
        add(node.policy->generation, 1);
        std::this_thread::sleep_for(std::chrono::microseconds(200));
        balance(node);
    }
    ends = true;
    for (auto& thread : threads) thread.join();
    CHECK(highest <= limit);
}
