#include <catch2/catch.hpp>

#include "tools/rdmaquotad/bypass/sample_window.hpp"

using namespace rdmaquota;

namespace {

struct Pair {
    std::uint64_t kernel, ledger;
};

// 200 ms after the look before it.
void look(SampleWindow& looks, bool same, Pair had) {
    static SampleWindow::Clock::time_point now;
    looks.begin(now += std::chrono::milliseconds(200), same);
    looks.set(Resource::qp, {had.kernel, had.kernel, had.ledger});
}

}  // namespace

TEST_CASE("what the kernel has more in three looks is a bypass, in two it is not") {
    SampleWindow looks;
    look(looks, false, {5, 1});
    look(looks, true, {5, 1});
    CHECK(looks.bypass(Resource::qp) == 0);
    look(looks, true, {5, 1});
    CHECK(looks.bypass(Resource::qp) == 4);
}

TEST_CASE("who makes and destroys all the time is held against the ledger of the last seconds") {
    SampleWindow looks;
    look(looks, false, {9, 9});
    for (int i = 0; i < 16; ++i) {
        look(looks, false, {9, 2});
        CHECK(looks.bypass(Resource::qp) == 0);
    }
    for (int i = 0; i < 16; ++i) look(looks, false, {9, 2});
    CHECK(looks.bypass(Resource::qp) == 7);
}

TEST_CASE("what the ledger has more is a leak after six looks") {
    SampleWindow looks;
    for (int i = 0; i < 5; ++i) {
        look(looks, i > 0, {1, 3});
        CHECK(looks.leak(Resource::qp) == 0);
    }
    look(looks, true, {1, 3});
    CHECK(looks.leak(Resource::qp) == 2);
    CHECK(looks.bypass(Resource::qp) == 0);
}

TEST_CASE("a look that is confirmed needs no others") {
    SampleWindow looks;
    look(looks, false, {5, 0});
    looks.confirm();
    CHECK(looks.bypass(Resource::qp) == 5);
    CHECK(looks.leak(Resource::qp) == 0);
}
