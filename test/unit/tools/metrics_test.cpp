#include <catch2/catch.hpp>

#include "tools/rdmaquotad/serve/metrics.hpp"

using namespace rdmaquota;

namespace {

bool has_line(const std::string& text, const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("metrics have tenant, device and resource, and no limit where there is none") {
    MetricsInput input;
    input.tenants.push_back(
        {"default", Mode::enforce, {{"rxe0", {{Resource::qp, 3, 10, 4}, {Resource::cq, 1, unlimited, 1}}}}, {}, {}});
    input.events["tightened"] = 2;
    input.denied["rxe0"] = {1, 7};
    const auto text = metrics_text(input);
    CHECK(has_line(text, R"(rdmaquota_usage{tenant="default",device="rxe0",resource="qp"} 3)"));
    CHECK(has_line(text, R"(rdmaquota_limit{tenant="default",device="rxe0",resource="qp"} 10)"));
    CHECK(has_line(text, R"(rdmaquota_peak{tenant="default",device="rxe0",resource="qp"} 4)"));
    CHECK(has_line(text, R"(rdmaquota_sidecar_events_total{kind="tightened"} 2)"));
    CHECK(has_line(text,
                   R"(rdmaquota_backstop_denials_total{tenant="default",device="rxe0",resource="hca_object"} 7)"));
    CHECK(text.find(R"(rdmaquota_limit{tenant="default",device="rxe0",resource="cq"})") == std::string::npos);
}

TEST_CASE("names out of the ledger cannot break the format") {
    MetricsInput input;
    input.tenants.push_back({"default", Mode::enforce, {{"a\"b\\c\nd", {{Resource::qp, 1, unlimited, 1}}}}, {}, {}});
    const auto text = metrics_text(input);
    CHECK(text.find(R"(device="a\"b\\c\\x0ad")") != std::string::npos);
}
