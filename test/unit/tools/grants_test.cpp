#include "tools/rdmaquotad/grants/grants.hpp"

#include "test/unit/tools/physics.hpp"

using namespace rdmaquota;

namespace {

struct GrantsFixture : Physics {
    Node node{path};
    NodeEvents events;
    Grants grants{node, events};

    GrantsFixture() {
        node.refresh();
        grants.pass(devices);
    }
    // As a program asks, and waits for the answer.
    void ask(std::size_t i) {
        const auto asked = ShareMover::Clock::now();
        const auto answered = grants.pass_for(children[i]);
        REQUIRE(answered);
        if (!*answered)
            while (!grants.has_read_all_since(asked)) grants.look_again();
    }
};

}  // namespace

TEST_CASE_METHOD(GrantsFixture, "a tenant that was at rest gets more at its first asking") {
    ledgers[2].retire(owners[2]);
    auto& watched = node.find("physics/c")->ledger();
    LedgerCopy scratch;
    for (int looks = 0; looks < 100 && !watched.at_rest(); ++looks)
        watched.look(scratch, {devices.begin(), devices.end()}, LedgerWatch::Clock::now());
    REQUIRE(watched.at_rest());
    grants.pass(devices);
    auto owner = ledgers[2].claim(identity_of_self());
    REQUIRE(owner);
    owners[2] = std::move(*owner);
    REQUIRE(charge(2, 400));
    REQUIRE_FALSE(charge(2, 400));
    ask(2);
    CHECK(charge(2, 400));
}

TEST_CASE_METHOD(GrantsFixture, "what others free after all were read is found before a tenant is answered") {
    REQUIRE(charge(2, 400));
    REQUIRE_FALSE(charge(2, 400));
    ask(2);
    REQUIRE(charge(2, 400));
    REQUIRE(charge(0, 1));
    grants.pass(devices);  // reading all again has to wait for four times as long, mostly
    uncharge(2, 800);
    REQUIRE_FALSE(charge(0, 399));
    ask(0);
    CHECK(charge(0, 399));
}
