#include <fstream>

#include <catch2/catch.hpp>

#include "test/unit/temporary_directory.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/history/history.hpp"
#include "tools/rdmaquotad/history/history_file.hpp"
#include "tools/rdmaquotad/history/history_json.hpp"

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

TEST_CASE("the sum of series has what they use together, in spans of which any was seen") {
    History history;
    constexpr std::uint64_t now = 1'000'000;
    const SeriesName other{"physics", "rxe0", Resource::qp};
    history.add(qp_of_rxe0, now - 2, 5, 5);
    history.add(qp_of_rxe0, now - 1, 7, 7);
    history.add(other, now - 1, 100, 100);
    history.add(other, now, 200, 200);
    const auto sum = History::sum({&history.all().at(qp_of_rxe0), &history.all().at(other)}, now);
    const auto seconds = sum.rings[0].last(now);
    CHECK(seconds[119].usage == 200);
    CHECK(seconds[118].usage == 107);
    CHECK(seconds[117].usage == 5);
    CHECK(seconds[116].usage == Span::unseen);
    CHECK(sum.rings[1].last(now)[119].usage == 207);
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

TEST_CASE("history outlives a restart, and what nobody saw between stays unseen") {
    const TemporaryDirectory directory;
    History before;
    before.add(qp_of_rxe0, 7200, 5, 5);
    before.add(qp_of_rxe0, 7201, 9, 9);
    before.add({"default", "rxe1", Resource::pd}, 7100, 1, 1);
    REQUIRE(save_history(directory.path(), before, 7201));
    auto loaded = load_history(directory.path(), 7210);
    REQUIRE(loaded);
    for (const auto& [name, series] : before.all())
        for (std::size_t i = 0; i < ring_shapes.size(); ++i) {
            const auto was = series.rings[i].last(7201), is = loaded->all().at(name).rings[i].last(7201);
            for (std::size_t span = 0; span < was.size(); ++span) {
                CHECK(is[span].usage == was[span].usage);
                CHECK(is[span].peak == was[span].peak);
            }
        }
    loaded->add(qp_of_rxe0, 7210, 2, 9);
    const auto seconds = ring(*loaded, 0).last(7210);
    CHECK(seconds[119].usage == 2);
    CHECK(seconds[119].peak == 2);
    CHECK(seconds[118].usage == Span::unseen);
    CHECK(seconds[110].usage == 9);
    CHECK(ring(*loaded, 2).last(7210)[167].peak == 9);
}

TEST_CASE("the last hour has a figure for each minute, of those who may be seen") {
    History history;
    history.add(qp_of_rxe0, 3600, 5, 5);
    history.add(qp_of_rxe0, 7200, 9, 9);
    history.add({"physics", "rxe0", Resource::qp}, 7200, 1, 1);
    const auto json = Json::parse(last_hour_text(history, [](const std::string& tenant) { return tenant == "default"; }, 7230));
    REQUIRE(json.size() == 1);
    CHECK(json[0][0] == "default");
    CHECK(json[0][1] == "rxe0");
    CHECK(json[0][2] == "qp");
    REQUIRE(json[0][3].size() == 60);
    CHECK(json[0][3][0].is_null());
    CHECK(json[0][3][59] == 9);
    CHECK(Json::parse(last_hour_text(history, [](const std::string&) { return false; }, 7230)) == Json::array());
}

TEST_CASE("a history that cannot be used is an error, and none is not") {
    const TemporaryDirectory directory;
    CHECK(load_history(directory.path(), 10)->all().empty());
    const auto path = directory.path() + "/history.json";
    for (const auto* text : {"", "{}", "[]", "{\"time\":5,\"history\":[{}]}",
                             "{\"time\":5,\"history\":[{\"tenant\":\"default\",\"device\":\"rxe0\",\"resource\":\"qp\","
                             "\"seconds\":{\"usage\":[1,2,3,4,5,6],\"peak\":[]}}]}"}) {
        std::ofstream(path) << text;
        CHECK_THAT(load_history(directory.path(), 10).error(), Catch::Contains("history.json is no history"));
    }
    std::ofstream(path) << "{\"time\":11,\"history\":[]}";
    CHECK_THAT(load_history(directory.path(), 10).error(), Catch::Contains("later time"));
}
