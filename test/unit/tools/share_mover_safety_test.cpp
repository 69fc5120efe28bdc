// The parent's limit holds whatever children do, and wherever the mover is killed.
#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <map>
#include <random>
#include <thread>
#include <utility>

#include "test/unit/tools/physics.hpp"
#include "test/waiting.hpp"
#include "tools/common/tenants/tenant_files.hpp"

using namespace rdmaquota;

namespace {

constexpr auto qp = Resource::qp;

struct Killed {};

}  // namespace

TEST_CASE_METHOD(Physics, "what is charged before a share is lowered is not handed on") {
    bool charged = false;
    ShareMover slow([&](std::string_view step) {
        if (step == "store" && !charged && used(0) == 1) charged = charge(2, 399);
    });
    pass(slow);
    REQUIRE(charge(2, 1));
    REQUIRE(charge(0, 1));
    pass(slow);
    CHECK_FALSE(charge(0, 800));
    pass(slow);
    CHECK(charged);
    CHECK(committed() <= total);
}

TEST_CASE_METHOD(Physics, "shares that another mover left are bumped before they count") {
    pass();
    const auto before = limits(0).generation();
    pass();
    CHECK(limits(0).generation() == before);
    ShareMover next;
    pass(next);
    CHECK(limits(0).generation() > before);
}

TEST_CASE_METHOD(Physics, "a gate that is forged upwards takes no more than the forger's share") {
    pass();
    REQUIRE(charge(2, 100));
    pass();
    ledgers[2].charge(owners[2], 0, Amounts{}.add(qp, 1'000'000), std::array<Limits, 1>{}.data());
    REQUIRE(charge(0, 1));
    CHECK_FALSE(charge(0, 1000));
    pass();
    CHECK(charge(0, 349));  // more than its share was: of the rest above guarantees, the forger's part is two thirds
    uncharge(0, used(0));
    CHECK(charge(1, 100));
}

TEST_CASE_METHOD(Physics, "where the kernel counts, a forged gate takes nothing") {
    std::map<std::string, std::uint64_t, std::less<>> made;
    bool whole = true;
    mover.ask_kernel([&](std::string_view key, std::vector<CountedUse>& uses) {
        const auto found = made.find(key);
        auto& use = uses.emplace_back(CountedUse{"rxe0", {}, {}});
        use.used[index(qp)] = found == made.end() ? 0 : found->second;
        use.whole[index(qp)] = whole;
    });
    pass();
    REQUIRE(charge(0, 1));
    const auto forge = [&](std::uint64_t amount) {
        ledgers[2].charge(owners[2], 0, Amounts{}.add(qp, amount), std::array<Limits, 1>{}.data());
    };
    SECTION("upwards") {
        forge(1'000'000);
        REQUIRE_FALSE(charge(0, 899));
        pass();
        CHECK(in_force(0) >= 850);
    }
    SECTION("downwards: what the kernel has is there") {
        made["physics/c"] = 600;
        REQUIRE_FALSE(charge(0, 899));
        pass();
        CHECK(in_force(0) <= 300);
    }
    SECTION("what it does not count as a whole is the larger figure") {
        whole = false;
        made["physics/c"] = 200;
        REQUIRE(charge(2, 400));
        REQUIRE_FALSE(charge(0, 899));
        pass();
        CHECK(in_force(0) <= 500);
        CHECK(in_force(0) > 400);
    }
}

TEST_CASE_METHOD(Physics, "a share that was lowered below what is used frees nothing before it is freed") {
    pass();
    REQUIRE(charge(2, 400));
    REQUIRE(LimitsWriter::open(limits_path(here_path(path, children[2])))->set(Scope::tenant, "rxe0", qp, 50));
    for (int i = 0; i < 3; ++i) {
        CHECK_FALSE(charge(0, 900));
        pass();
        CHECK(committed() <= total);
    }
    CHECK(used(2) == 400);
    CHECK(charge(0, in_force(0)));
    CHECK(used(0) + used(1) + used(2) <= total);
}

TEST_CASE_METHOD(Physics, "a tenant that became an inner one keeps what it uses, and gets nothing more") {
    pass();
    REQUIRE(charge(0, 150));
    Policy policy;
    limit(policy.tenant("physics"), total);
    for (const auto& child : children) policy.tenant(child);
    policy.tenant("physics/a/x");
    publish(policy);
    const auto of_x = [&] {
        return LimitsSegment::open(limits_path(here_path(path, "physics/a/x")))->limit(Scope::tenant, "rxe0", qp);
    };
    for (int i = 0; i < 2; ++i) {
        pass(mover, ShareMover::Wants::limit);
        CHECK(150 + in_force(1) + in_force(2) + of_x() <= total);
    }
    CHECK(150 + in_force(1) + in_force(2) + of_x() == total);
    CHECK_FALSE(charge(0, 1));
    uncharge(0, 100);
    CHECK_FALSE(charge(0, 200));
    pass(mover, ShareMover::Wants::limit);
    CHECK_FALSE(charge(0, 1));
    CHECK(50 + in_force(1) + in_force(2) + of_x() == total);
}

TEST_CASE_METHOD(Physics, "a tenant that is removed meanwhile is no problem, and the others get what there is") {
    pass();
    bool removed = false;
    ShareMover next([&](std::string_view) {
        if (!std::exchange(removed, true)) remove_tenant_files(path, {children[1], here_path(path, children[1])});
    });
    pass(next);
    REQUIRE(removed);
    pass(next);
    CHECK(in_force(0) + in_force(2) == total);
}

TEST_CASE_METHOD(Physics, "the sum holds while children change and the mover is killed anywhere") {
    std::mt19937 random(3);
    const auto below = [&](std::uint64_t n) { return std::uniform_int_distribution<std::uint64_t>(0, n - 1)(random); };
    pass(mover, ShareMover::Wants::limit);
    for (int round = 0; round < 400; ++round) {
        const auto child = below(3);
        if (below(3) == 0) uncharge(child, std::min(used(child), below(300)));
        else (void)charge(child, 1 + below(200));
        if (below(4) == 0) {
            auto left = below(8);
            ShareMover mortal([&](std::string_view) {
                if (left-- == 0) throw Killed();
            });
            try {
                pass(mortal);
            } catch (const Killed&) {
            }
        } else {
            pass();
        }
        INFO("round " << round);
        REQUIRE(committed() <= total);
    }
}

// Chargers as the provider has them: raise, then compare the generation.
TEST_CASE_METHOD(Physics, "the sum holds while threads charge and shares move") {
    pass(mover, ShareMover::Wants::limit);
    std::atomic<std::uint64_t> held{0}, most{0};
    std::atomic<bool> end{false};
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < 3; ++i)
        threads.emplace_back([&, i] {
            std::mt19937 random(static_cast<unsigned>(i));
            std::vector<std::uint64_t> own;
            const auto segment = limits(i);
            while (!end) {
                const auto amount = 1 + random() % 90;
                if (random() % 3 == 0 && !own.empty()) {
                    held -= own.back();
                    uncharge(i, own.back());
                    own.pop_back();
                    continue;
                }
                const auto generation = segment.generation();
                Limits bounds;
                bounds.tenant = segment.limit(Scope::tenant, "rxe0", qp);
                const auto amounts = Amounts{}.add(qp, amount);
                Denial denial;
                if (!ledgers[i].charge_at_once(owners[i], 0, amounts, &bounds, denial)) {
                    auto& word = ledgers[i].demand(0, qp);
                    store(word, next_demand(load(word), used(i) + amount));
                    continue;
                }
                if (segment.generation() != generation) {
                    uncharge(i, amount);
                    continue;
                }
                const auto now = held += amount;
                own.push_back(amount);
                auto before = most.load();
                while (before < now && !most.compare_exchange_weak(before, now)) {
                }
            }
            for (const auto amount : own) uncharge(i, amount);
        });
    for (int i = 0; i < 300; ++i) pass();
    // Until enough has happened to be judged, however seldom the threads run.
    CHECK(eventually([&] { return pass(), most > total / 2 && mover.moves() > 5; }));
    end = true;
    for (auto& thread : threads) thread.join();
    CHECK(most <= total);
}
