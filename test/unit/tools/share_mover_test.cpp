// Who gets which share.
#include <catch2/catch.hpp>

#include <array>
#include <random>

#include "shm/remedy.hpp"
#include "test/unit/tools/physics.hpp"

using namespace rdmaquota;

namespace {

constexpr auto qp = Resource::qp;

}  // namespace

TEST_CASE_METHOD(Physics, "children begin with nothing, then get guarantee and weight") {
    CHECK(all_in_force() == std::vector<std::uint64_t>{0, 0, 0});
    pass(mover, ShareMover::Wants::limit);
    CHECK(all_in_force() == std::vector<std::uint64_t>{300, 300, 400});
    CHECK(limits(0).reason(Scope::tenant, "rxe0", qp) == Reason::grant);
    CHECK(limits(0).limit(Scope::tenant, "mlx5_9", qp) == 300);  // a device that may come
    CHECK(committed() == total);
}

TEST_CASE_METHOD(Physics, "a tenant with others below it has its limit, no share") {
    Policy policy;
    row_for(policy.node, "*")[index(qp)] = 500;
    limit(policy.tenant("physics"), total);
    for (const auto& child : children) policy.tenant(child);
    limit(policy.tenant("new/inner"), 50);
    policy.tenant("new/inner/leaf");
    publish(policy);
    pass(mover, ShareMover::Wants::limit);
    const auto inner = LimitsSegment::open(limits_path(here_path(path, "new/inner")), LimitsSegment::Parts::all);
    REQUIRE(inner);
    CHECK(inner->limit(Scope::tenant, "rxe0", qp) == 50);
    CHECK(LimitsSegment::open(limits_path(here_path(path, "new/inner/leaf")))->limit(Scope::tenant, "rxe0", qp) == 50);
    CHECK(committed() == 225);  // the other half of 450 is what default may use
}

TEST_CASE_METHOD(Physics, "idle shares go to who asks, guarantees stay") {
    pass();
    REQUIRE(charge(2, 400));
    CHECK_FALSE(charge(2, 400));
    pass();
    CHECK(charge(2, 400));
    CHECK(committed() <= total);
    CHECK(in_force(0) >= 100);
    CHECK(in_force(1) >= 100);
    CHECK_FALSE(charge(2, 1));
    pass();
    CHECK_FALSE(charge(2, 1));  // the rest is guaranteed to others

    SECTION("an owner returns: its guarantee at once, the rest as the borrower frees it") {
        CHECK(charge(0, 100));
        CHECK_FALSE(charge(0, 50));
        pass();
        CHECK_FALSE(charge(0, 50));
        REQUIRE(mover.debts().size() == 1);
        CHECK(mover.debts()[0].tenant == "physics/c");
        CHECK(mover.debts()[0].used == 800);
        CHECK(mover.debts()[0].share == in_force(2));
        CHECK(in_force(2) < 800);
        REQUIRE(mover.earmarks().size() == 1);
        CHECK(mover.earmarks()[0].tenant == "physics/a");
        CHECK(mover.earmarks()[0].amount == 50);
        CHECK(limits(0).earmarked("rxe0", qp) == 50);
        CHECK(limits(2).earmarked("rxe0", qp) == 0);
        uncharge(2, 60);
        CHECK_FALSE(charge(2, 1));  // frozen
        pass();
        CHECK(charge(0, 50));
        CHECK(committed() <= total);
        pass();
        CHECK(mover.earmarks().empty());
        CHECK(limits(0).earmarked("rxe0", qp) == 0);
    }
}

TEST_CASE_METHOD(Physics, "an asking is forgotten after a while") {
    pass();
    REQUIRE(charge(2, 400));
    CHECK_FALSE(charge(2, 400));
    pass();
    CHECK(in_force(2) == 800);
    const auto later = ShareMover::Clock::now() + ShareTree::asking_lasts;
    pass(mover, ShareMover::Wants::use, later);
    REQUIRE(charge(0, 1));
    CHECK_FALSE(charge(0, 1000));
    pass(mover, ShareMover::Wants::use, later);
    CHECK(in_force(0) > 450);
}

TEST_CASE_METHOD(Physics, "a pass that may take no time does a little, and the next ones the rest") {
    pass();
    REQUIRE(charge(2, 100));
    REQUIRE(charge(0, 1));
    CHECK_FALSE(charge(0, 699));
    most = std::chrono::nanoseconds(0);
    pass();
    CHECK_FALSE(mover.complete());
    for (int i = 0; i < 500 && !charge(0, 699); ++i) {
        pass();
        CHECK(committed() <= total);
    }
    CHECK(used(0) == 700);
    most = ShareMover::Clock::duration::max();
    pass();
    CHECK(mover.complete());
}

TEST_CASE_METHOD(TenantNode, "a share that is used up is told of whose limit it is a share of") {
    Policy policy;
    limit(policy.tenant("physics"), 1000);
    limit(policy.tenant("physics/a"), 900);
    const Denial denial{qp, Scope::tenant, false, 300, 300, 1, true};
    const auto above = [&] {
        publish(policy);
        return circumstances_of(path, here_path(path, "physics/a"), "physics/a", "rxe0", denial, Reason::grant).above;
    };
    SECTION("the nearest, where both are full") { CHECK(above() == "physics"); }
    SECTION("not one that has a share itself") {
        row_for(policy.node, "*")[index(qp)] = 500;
        CHECK(above() == "node");
    }
}

TEST_CASE_METHOD(TenantNode, "a share is told of whose limit is full, not of the nearest") {
    Policy policy;
    row_for(policy.node, "*")[index(qp)] = 5500;
    limit(policy.tenant("physics"), 5000);
    for (const auto* leaf : {"physics/a", "physics/b", "biology"}) policy.tenant(leaf);
    publish(policy);
    const auto grant = [&](std::string_view tenant, std::uint64_t share) {
        auto writer = LimitsWriter::open(limits_path(here_path(path, tenant)));
        REQUIRE(writer);
        const std::array<LimitsWriter::Grant, 2> both{{{"*", qp, unset}, {"rxe0", qp, share}}};
        REQUIRE(writer->grant(both, ""));
    };
    const auto bound = [&](std::uint64_t of_a, std::uint64_t of_b, std::uint64_t of_biology) {
        grant("physics", unset);  // as a division leaves it: only who has processes has a share
        grant("default", 0);
        grant("physics/a", of_a);
        grant("physics/b", of_b);
        grant("biology", of_biology);
        const Denial denial{qp, Scope::tenant, false, of_a, of_a, 1, true};
        const auto found =
            circumstances_of(path, here_path(path, "physics/a"), "physics/a", "rxe0", denial, Reason::grant);
        return std::pair(found.above, found.above_limit);
    };
    CHECK(bound(4000, 944, 556) == std::pair(std::string("node"), std::uint64_t{5500}));
    CHECK(bound(4000, 1000, 100) == std::pair(std::string("physics"), std::uint64_t{5000}));
}

TEST_CASE_METHOD(Physics, "a device that comes while tenants are at rest, and the kernel counts on it, is taken in") {
    std::uint64_t made = 0;
    mover.ask_kernel([&](std::string_view key, std::vector<CountedUse>& uses) {
        if (key != "physics/a") return;
        auto& use = uses.emplace_back(CountedUse{devices.back(), {}, {}});
        use.used[index(qp)] = made;
        use.whole[index(qp)] = true;
    });
    pass();
    REQUIRE(charge(0, 1));
    pass();
    uncharge(0, 1);
    pass();
    at_rest = true;
    pass();
    devices.emplace_back("rxe1");
    made = 5;
    pass();
    pass();
    CHECK(limits(0).limit(Scope::tenant, "rxe1", qp) >= 5);
}

TEST_CASE_METHOD(Physics, "a limit that goes away releases the children") {
    pass();
    REQUIRE(LimitsWriter::open(limits_path(here_path(path, "physics")))->set(Scope::tenant, "*", qp, unlimited));
    pass();
    CHECK(in_force(0) == unlimited);
    CHECK(limits(0).granted("rxe0", qp) == unset);
}

// Programs that give one in fifty back now and then and create what they lack, each step whenever it gets its turn; the sidecar
// looks at who asks, and at all once a second.
TEST_CASE_METHOD(Physics, "who wants more than there is gets its fair part, no less and no more") {
    struct Row {
        std::vector<std::uint64_t> wanted, fair;
    };
    const std::vector<Row> rows{{{0, 0, 1000}, {0, 0, 800}},           {{1000, 0, 0}, {900, 0, 0}},
                                {{200, 200, 1000}, {200, 200, 600}},   {{1000, 1000, 0}, {500, 500, 0}},
                                {{1000, 1000, 1000}, {300, 300, 400}}, {{150, 1000, 1000}, {150, 350, 500}},
                                {{50, 60, 70}, {50, 60, 70}}};
    std::mt19937 random{static_cast<unsigned>(GENERATE(range(0, 10)))};
    const Limits none;
    for (std::size_t i = 0; i < children.size(); ++i)  // a device is in use before QPs are
        REQUIRE_FALSE(ledgers[i].charge(owners[i], 0, Amounts{}.add(Resource::pd, 1), &none));
    auto now = ShareMover::Clock::now();
    std::vector<std::uint64_t> giving(3);
    std::vector<bool> rests(3);
    const auto turn = [&](std::size_t i, std::uint64_t wanted) {
        if (rests[i]) {
            rests[i] = random() % 20 != 0;
            giving[i] = (used(i) + 49) / 50;
        } else if (giving[i] > 0) {
            uncharge(i, 1);
            --giving[i];
        } else if (used(i) == wanted) {
            rests[i] = true;
        } else if (!charge(i, 1)) {
            pass(mover, ShareMover::Wants::use, now, children[i]);
            rests[i] = !charge(i, 1);
        }
    };
    for (const auto& row : rows) {
        for (int millisecond = 0; millisecond < 20'000; ++millisecond) {
            now += std::chrono::milliseconds(1);
            if (millisecond % 1000 == 0) pass(mover, ShareMover::Wants::use, now);
            const auto i = random() % 3;
            turn(i, row.wanted[i]);
        }
        INFO("wanted " << row.wanted[0] << " " << row.wanted[1] << " " << row.wanted[2] << ", got " << used(0) << " " << used(1)
                       << " " << used(2));
        for (std::size_t i = 0; i < children.size(); ++i) {
            const auto near = row.fair[i] / 50 + 3;  // what is just being given back
            CHECK(used(i) + near >= row.fair[i]);
            CHECK(used(i) <= row.fair[i] + near);
        }
        CHECK(committed() <= total);
        for (std::size_t i = 0; i < children.size(); ++i) {
            if (used(i) > 0) uncharge(i, used(i));
            giving[i] = 0;
        }
    }
}

TEST_CASE_METHOD(Physics, "shares stay where they are while what was given back is created again") {
    const std::vector<std::uint64_t> fair{150, 350, 500};
    auto now = ShareMover::Clock::now();
    const Limits none;
    for (std::size_t i = 0; i < children.size(); ++i) {
        REQUIRE_FALSE(ledgers[i].charge(owners[i], 0, Amounts{}.add(Resource::pd, 1), &none));
        while (used(i) < fair[i])
            if (!charge(i, 1)) pass(mover, ShareMover::Wants::use, now, children[i]);
    }
    const auto ask = [&] {  // both want more than they can get
        CHECK_FALSE(charge(1, 1));
        CHECK_FALSE(charge(2, 1));
    };
    ask();
    for (int i = 0; i < 30; ++i) pass(mover, ShareMover::Wants::use, now += std::chrono::seconds(1));
    const auto before = mover.moves();
    for (int i = 0; i < 1000; ++i) {
        const auto who = static_cast<std::size_t>(i) % children.size();
        const auto part = fair[who] / 50;
        ask();
        uncharge(who, part);
        pass(mover, ShareMover::Wants::use, now += std::chrono::milliseconds(500));
        CHECK(charge(who, part));
        pass(mover, ShareMover::Wants::use, now += std::chrono::milliseconds(500));
    }
    CHECK(mover.moves() == before);
    CHECK(all_in_force() == fair);
}

TEST_CASE_METHOD(Physics, "who asks while all are read in several passes does not end that") {
    pass();
    most = std::chrono::nanoseconds(1);  // one tenant at a time
    pass();
    REQUIRE_FALSE(mover.complete());
    most = ShareMover::Clock::duration::max();
    pass(mover, ShareMover::Wants::use, ShareMover::Clock::now(), children[0]);
    CHECK_FALSE(mover.complete());
    pass();
    CHECK(mover.complete());
}

TEST_CASE_METHOD(Physics, "it is told whose share was raised") {
    pass(mover, ShareMover::Wants::limit);
    CHECK(mover.has_raised(children[0]));
    CHECK(charge(0, 1));
    CHECK_FALSE(charge(0, 500));
    pass(mover, ShareMover::Wants::use, ShareMover::Clock::now(), children[0]);
    CHECK(mover.has_raised(children[0]));
    CHECK_FALSE(mover.has_raised(children[1]));
    pass(mover, ShareMover::Wants::use, ShareMover::Clock::now(), children[0]);
    CHECK_FALSE(mover.has_raised(children[0]));
}
