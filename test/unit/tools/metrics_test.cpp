#include <catch2/catch.hpp>

#include <fmt/core.h>

#include "tools/rdmaquotad/metrics/metrics.hpp"

using namespace rdmaquota;

namespace {

bool has_line(const std::string& text, const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("metrics have tenant, device and resource, and no limit where there is none") {
    MetricsInput input;
    input.tenants.push_back(
        {"default", {{"rxe0", {{Resource::qp, 3, 10, 4}, {Resource::cq, 1, unlimited, 1}}}}, 2, 1});
    input.events["tightened"] = 2;
    input.denied["rxe0"] = {1, 7};
    const auto text = metrics_text(input);
    CHECK(has_line(text, R"(rdmaquota_usage{tenant="default",device="rxe0",resource="qp"} 3)"));
    CHECK(has_line(text, R"(rdmaquota_limit{tenant="default",device="rxe0",resource="qp"} 10)"));
    CHECK(has_line(text, R"(rdmaquota_peak{tenant="default",device="rxe0",resource="qp"} 4)"));
    CHECK(has_line(text, R"(rdmaquota_processes{tenant="default"} 2)"));
    CHECK(has_line(text, R"(rdmaquota_changed_limits{tenant="default"} 1)"));
    CHECK(has_line(text, R"(rdmaquota_sidecar_events_total{kind="tightened"} 2)"));
    CHECK(has_line(text,
                   R"(rdmaquota_backstop_denials_total{tenant="default",device="rxe0",resource="hca_object"} 7)"));
    CHECK(text.find(R"(rdmaquota_limit{tenant="default",device="rxe0",resource="cq"})") == std::string::npos);
}

TEST_CASE("metrics have soft limits, guarantees and debts where there are some") {
    ResourceView view{Resource::qp, 30, 20, 40, 50, Reason::grant, 5, 25, 0, 60};
    MetricsInput input;
    input.tenants.push_back({"lab/ann", {{"rxe0", {view, {Resource::cq, 1, 9, 1}}}}, 1, 1});
    const auto text = metrics_text(input);
    CHECK(has_line(text, R"(rdmaquota_soft_limit{tenant="lab/ann",device="rxe0",resource="qp"} 25)"));
    CHECK(has_line(text, R"(rdmaquota_guarantee{tenant="lab/ann",device="rxe0",resource="qp"} 5)"));
    CHECK(has_line(text, R"(rdmaquota_debt{tenant="lab/ann",device="rxe0",resource="qp"} 10)"));
    for (const auto* name : {"soft_limit", "guarantee", "debt"})
        CHECK(text.find(fmt::format(R"(rdmaquota_{}{{tenant="lab/ann",device="rxe0",resource="cq"}})", name)) ==
              std::string::npos);
}

TEST_CASE("metrics have the guard's figures where there is one") {
    MetricsInput input;
    CHECK(has_line(metrics_text(input), "rdmaquota_guard_mode 0"));
    CHECK(metrics_text(input).find("rdmaquota_guard_refused_total") == std::string::npos);
    input.guard = {2, 7, 1, 1, {{"lab/ann", "rxe0", Resource::mr_bytes, 4096}}};
    const auto text = metrics_text(input);
    CHECK(has_line(text, "rdmaquota_guard_mode 2"));
    CHECK(has_line(text, "rdmaquota_guard_refused_total 7"));
    CHECK(has_line(text, "rdmaquota_guard_exceeded_total 1"));
    CHECK(has_line(text, "rdmaquota_guard_killed_total 1"));
    CHECK(has_line(text, R"(rdmaquota_kernel_usage{tenant="lab/ann",device="rxe0",resource="mr_bytes"} 4096)"));
}

TEST_CASE("names out of the ledger cannot break the format") {
    MetricsInput input;
    input.tenants.push_back({"default", {{"a\"b\\c\nd", {{Resource::qp, 1, unlimited, 1}}}}, 0, 0});
    const auto text = metrics_text(input);
    CHECK(text.find(R"(device="a\"b\\c\\x0ad")") != std::string::npos);
}

TEST_CASE("the first tenants have series of their own, the rest those of their templates") {
    std::vector<NamedTenant> tenants;
    for (std::size_t i = 0; i < most_own; ++i)
        tenants.push_back({fmt::format("user/#{}", i), fmt::format("user/u{}", i), "user/{user}"});
    tenants.push_back({"default", "default", ""});
    const auto labels = metrics_labels(tenants);
    CHECK(labels.back() == "default");
    CHECK(labels.front() == "user/u0");
    CHECK(labels[most_own - 2] == fmt::format("user/u{}", most_own - 2));
    CHECK(labels[most_own - 1] == "user/{user}");
}
