#include <catch2/catch.hpp>

#include "tools/rdmaquotad/history.hpp"

using namespace rdmaquota;

namespace {

const SeriesName qp_of_rxe0{"default", "rxe0", Resource::qp};

const Ring& ring(const History& history, std::size_t which) { return history.all().at(qp_of_rxe0).rings[which]; }

}  // namespace

TEST_CASE("history keeps the usage at the end of each span, and the highest within it") {
    History history;
    history.add(qp_of_rxe0, 6000, 5, 5);
    history.add(qp_of_rxe0, 6001, 9, 9);
    history.add(qp_of_rxe0, 6002, 2, 9);
    const auto seconds = ring(history, 0).last(6002);
    REQUIRE(seconds.size() == ring_shapes[0].spans);
    CHECK(seconds[119].usage == 2);
    CHECK(seconds[118].usage == 9);
    CHECK(seconds[117].usage == 5);
    CHECK(seconds[116].usage == Span::unseen);
    const auto minutes = ring(history, 1).last(6002);
    CHECK(minutes[119].usage == 2);
    CHECK(minutes[119].peak == 9);
    CHECK(minutes[118].usage == Span::unseen);
}

TEST_CASE("a peak that came and went between two looks is in the history") {
    History history;
    history.add(qp_of_rxe0, 100, 1, 1);
    history.add(qp_of_rxe0, 101, 1, 40);
    history.add(qp_of_rxe0, 102, 1, 40);
    const auto seconds = ring(history, 0).last(102);
    CHECK(seconds[119].peak == 1);
    CHECK(seconds[118].peak == 40);
    CHECK(seconds[118].usage == 1);
}

TEST_CASE("spans that nobody saw are unseen, also after more than a ring's length") {
    History history;
    history.add(qp_of_rxe0, 1000, 3, 3);
    history.add(qp_of_rxe0, 1010, 4, 4);
    auto seconds = ring(history, 0).last(1012);
    CHECK(seconds[119].usage == Span::unseen);
    CHECK(seconds[117].usage == 4);
    CHECK(seconds[116].usage == Span::unseen);
    CHECK(seconds[107].usage == 3);
    history.add(qp_of_rxe0, 5000, 6, 6);
    seconds = ring(history, 0).last(5000);
    CHECK(seconds[119].usage == 6);
    for (std::size_t i = 0; i < 119; ++i) CHECK(seconds[i].usage == Span::unseen);
}

TEST_CASE("a clock that goes back adds to the newest span") {
    History history;
    history.add(qp_of_rxe0, 1000, 3, 3);
    history.add(qp_of_rxe0, 900, 8, 8);
    const auto seconds = ring(history, 0).last(900);
    CHECK(seconds[119].usage == 8);
    CHECK(seconds[118].usage == Span::unseen);
}

TEST_CASE("history has a bounded number of series, and none for what was never used") {
    History history;
    history.add({"default", "idle", Resource::qp}, 1, 0, 0);
    CHECK(history.all().empty());
    for (std::size_t i = 0; i < History::most_series + 10; ++i)
        history.add({"default", "dev" + std::to_string(i), Resource::qp}, 1, 1, 1);
    CHECK(history.all().size() == History::most_series);
    CHECK(history.refused() == 10);
}
