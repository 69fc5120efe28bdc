#include <algorithm>
#include <deque>

#include <catch2/catch.hpp>

#include "tools/rdmaquotad/loop/look_schedule.hpp"

using namespace rdmaquota;
using namespace std::chrono_literals;

namespace {

// Tenants whose ledgers take a time to read, on a clock of its own.
struct Ward {
    struct Item {
        int name;
        LookSchedule::Clock::duration takes;
        LookSchedule::Turn turn;
    };
    LookSchedule::Clock::time_point time{1h};
    LookSchedule schedule{[this] { return time; }, [this] { return time; }};
    std::deque<Item> items;
    std::vector<int> looked;  // in order

    Item& add(LookSchedule::Clock::duration takes) { return items.emplace_back(Item{int(items.size()), takes, {}}); }
    bool pass(LookSchedule::Clock::duration budget) {
        std::vector<Item*> all;
        for (auto& item : items) all.push_back(&item);
        looked.clear();
        return schedule.pass(all, budget, [this](Item& item) {
            looked.push_back(item.name);
            time += item.takes;
        });
    }
};

}  // namespace

TEST_CASE("a look that took long is repeated after twenty times as long, or twenty seconds") {
    Ward ward;
    ward.add(30ms);
    ward.add(3s);
    REQUIRE(ward.pass(10s));
    CHECK(ward.items[0].turn.due == ward.time - 3s + 600ms);
    CHECK(ward.items[1].turn.due == ward.time + 20s);
    ward.time += 19s;
    REQUIRE(ward.pass(10s));
    CHECK(ward.looked == std::vector{0});
}

TEST_CASE("cheap ones come first, and those that wait long") {
    Ward ward;
    ward.add(40ms);
    ward.add(100us);
    ward.add(50us);
    REQUIRE(ward.pass(1s));
    ward.time += 5s;
    REQUIRE(ward.pass(1s));
    CHECK(ward.looked == std::vector{2, 1, 0});
    ward.time += 25s;
    REQUIRE(ward.pass(1s));
    CHECK(ward.looked == std::vector{2, 1, 0});
    ward.items[0].turn.due -= 1min;
    ward.time += 5s;
    REQUIRE(ward.pass(1s));
    CHECK(ward.looked == std::vector{0, 2, 1});
}

TEST_CASE("a pass ends when its time is over, and the next one comes to the rest") {
    Ward ward;
    for (int i = 0; i < 1000; ++i) ward.add(500us);
    CHECK_FALSE(ward.pass(250ms));
    CHECK(ward.looked.size() == 500);
    CHECK(ward.looked.back() == 499);
    CHECK_FALSE(ward.pass(100ms));  // the first are due again, but wait
    CHECK(ward.looked.front() == 500);
    ward.time += 1s;
    CHECK_FALSE(ward.pass(250ms));
    CHECK(ward.looked.front() == 700);
}

TEST_CASE("tenants that make every look long delay nobody else's") {
    Ward ward;
    for (int i = 0; i < 20; ++i) ward.add(100ms);
    for (int i = 0; i < 100; ++i) ward.add(50us);
    (void)ward.pass(10s);
    for (int tick = 0; tick < 60; ++tick) {
        ward.time += 1s;
        const auto begin = ward.time;
        (void)ward.pass(250ms);
        CHECK(ward.time - begin <= 350ms);
        REQUIRE(ward.looked.size() >= 100);
        CHECK(ward.looked.front() >= 20);
        CHECK(std::count_if(ward.looked.begin(), ward.looked.end(), [](int name) { return name >= 20; }) == 100);
    }
}

TEST_CASE("what is made of a look counts as a part of it") {
    Ward ward;
    auto& item = ward.add(10ms);
    REQUIRE(ward.pass(1s));
    ward.schedule.add(item.turn, [&] { ward.time += 40ms; });
    CHECK(item.turn.due == ward.time + 1s);
}
