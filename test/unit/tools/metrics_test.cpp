#include <catch2/catch.hpp>

#include <cerrno>

#include <fmt/core.h>

#include "tools/rdmaquotad/bypass/churn.hpp"
#include "tools/rdmaquotad/metrics/exposition.hpp"
#include "tools/rdmaquotad/metrics/label_sums.hpp"
#include "tools/rdmaquotad/metrics/metrics.hpp"

using namespace rdmaquota;

namespace {

bool has_line(const std::string& text, const std::string& line) {
    return ("\n" + text).find("\n" + line + "\n") != std::string::npos;
}

bool has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

Event denial(EventKind kind, Resource resource, Reason reason = Reason::configured, std::uint32_t error = EDQUOT) {
    Event event{};
    event.kind = kind;
    event.resource = static_cast<std::uint32_t>(index(resource));
    event.reason = static_cast<std::uint32_t>(reason);
    event.error = error;
    return event;
}

KernelUse use(std::uint32_t pid, std::uint64_t created, std::uint64_t destroyed) {
    KernelUse use;
    use.pid = use.opener = pid;
    use.device = "rxe0";
    use.created[index(Resource::qp)] = created;
    use.destroyed[index(Resource::qp)] = destroyed;
    return use;
}

}  // namespace

TEST_CASE("metrics have tenant, device and resource, and no limit where there is none") {
    MetricsInput input;
    input.version = "1.2";
    input.start_s = 1700000000;
    input.tenants.push_back(
        {"default", {{"rxe0", {{Resource::qp, 3, 10, 4, 20}, {Resource::cq, 1, unlimited, 1}}}}, 2, 1});
    input.events["tightened"] = 2;
    input.uncounted[{"default", "rxe0", "db.service"}] = 2;
    input.missing_devices = {"mlx5_9"};
    input.backstop["rxe0"] = {1, 7};
    input.devices[{"rxe0", Resource::qp}] = {3, 4096};
    const auto text = metrics_text(input);
    CHECK(has_line(text, R"(rdmaquota_build_info{version="1.2"} 1)"));
    CHECK(has_line(text, "process_start_time_seconds 1700000000"));
    CHECK(has_line(text, R"(rdmaquota_usage{tenant="default",device="rxe0",resource="qp"} 3)"));
    CHECK(has_line(text, R"(rdmaquota_limit{tenant="default",device="rxe0",resource="qp"} 10)"));
    CHECK(has_line(text, R"(rdmaquota_configured_limit{tenant="default",device="rxe0",resource="qp"} 20)"));
    CHECK(has_line(text, R"(rdmaquota_room{tenant="default",device="rxe0",resource="qp"} 7)"));
    CHECK(has_line(text, R"(rdmaquota_peak{tenant="default",device="rxe0",resource="qp"} 4)"));
    CHECK(has_line(text, R"(rdmaquota_processes{tenant="default"} 2)"));
    CHECK(has_line(text, R"(rdmaquota_changed_limits{tenant="default"} 1)"));
    CHECK(has_line(text, R"(rdmaquota_sidecar_events_total{kind="tightened"} 2)"));
    CHECK(has_line(text, R"(rdmaquota_missing_device{device="mlx5_9"} 1)"));
    CHECK(has_line(text, R"(rdmaquota_uncounted_processes{tenant="default",device="rxe0",program="db.service"} 2)"));
    CHECK(has_line(text, R"(rdmaquota_device_usage{device="rxe0",resource="qp"} 3)"));
    CHECK(has_line(text, R"(rdmaquota_device_capacity{device="rxe0",resource="qp"} 4096)"));
    CHECK(has_line(text,
                   R"(rdmaquota_backstop_denials_total{tenant="default",device="rxe0",resource="hca_object"} 7)"));
    for (const auto* name : {"limit", "room"})
        CHECK_FALSE(has(text, fmt::format(R"(rdmaquota_{}{{tenant="default",device="rxe0",resource="cq"}})", name)));
}

TEST_CASE("metrics have soft limits, guarantees and debts where there are some") {
    ResourceView view{Resource::qp, 30, 20, 40, 50, Reason::grant, 5, 25, 0, 60};
    MetricsInput input;
    input.tenants.push_back({"lab/ann", {{"rxe0", {view, {Resource::cq, 1, 9, 1}}}}, 1, 1});
    const auto text = metrics_text(input);
    CHECK(has_line(text, R"(rdmaquota_soft_limit{tenant="lab/ann",device="rxe0",resource="qp"} 25)"));
    CHECK(has_line(text, R"(rdmaquota_guarantee{tenant="lab/ann",device="rxe0",resource="qp"} 5)"));
    CHECK(has_line(text, R"(rdmaquota_debt{tenant="lab/ann",device="rxe0",resource="qp"} 10)"));
    CHECK(has_line(text, R"(rdmaquota_room{tenant="lab/ann",device="rxe0",resource="qp"} 0)"));
    for (const auto* name : {"soft_limit", "soft_grace_seconds", "guarantee", "debt"})
        CHECK_FALSE(has(text, fmt::format(R"(rdmaquota_{}{{tenant="lab/ann",device="rxe0",resource="cq"}})", name)));
}

TEST_CASE("there is no room above a soft limit whose grace period is over") {
    ResourceView view{Resource::qp, 30, 50, 40};
    view.soft = 25;
    view.soft_since = 1;  // since the boot
    CHECK(view.room() == 0);
    view.usage = 20;
    CHECK(view.room() == 30);
}

TEST_CASE("what a limit may deny has a counter before it does") {
    MetricsInput input;
    input.tenants.push_back({"lab", {{"rxe0", {{Resource::qp, 0, 9, 0}, {Resource::cq, 1, unlimited, 1}}}}, 1, 0});
    DenialCounts counts;
    counts.add("lab", "rxe0", denial(EventKind::denied, Resource::qp, Reason::rule), 3);
    counts.add("lab", "rxe0", denial(EventKind::denied, Resource::qp, Reason::rule), 2);
    counts.add("lab", "rxe0", denial(EventKind::would_deny, Resource::pd), 1);
    counts.add("lab", "rxe0", denial(EventKind::refused_by_device, Resource::qp, Reason::configured, ENOMEM), 1);
    counts.add("lab", "rxe0", denial(EventKind::reaped, Resource::qp), 1);
    input.denials = counts.all();
    const auto text = metrics_text(input);
    CHECK(has_line(text, R"(rdmaquota_denied_total{tenant="lab",device="rxe0",resource="qp",reason="configured"} 0)"));
    CHECK(has_line(text, R"(rdmaquota_denied_total{tenant="lab",device="rxe0",resource="qp",reason="rule"} 5)"));
    CHECK(has_line(text, R"(rdmaquota_would_deny_total{tenant="lab",device="rxe0",resource="pd",reason="configured"} 1)"));
    CHECK(has_line(text, R"(rdmaquota_refused_by_device_total{tenant="lab",device="rxe0",resource="qp",error="ENOMEM"} 1)"));
    CHECK_FALSE(has(text, R"(rdmaquota_denied_total{tenant="lab",device="rxe0",resource="cq")"));
    CHECK(has_line(text, R"(rdmaquota_bypasses_total{tenant="lab",device="rxe0",resource="qp"} 0)"));
}

TEST_CASE("metrics have rates, what they delayed and what they denied") {
    MetricsInput input;
    input.tenants.push_back({"lab", {}, 1, 0, {{"rxe0", Resource::commands_per_s, 2000, 4000, unlimited, Reason::grant},
                                               {"rxe0", Resource::registered_per_s, unlimited, unlimited, unlimited}}});
    input.delayed_calls[{"lab", "rxe0", "commands_per_s"}] = 412;
    input.delayed_ms[{"lab", "rxe0", "commands_per_s"}] = 3205;
    DenialCounts counts;
    counts.add("lab", "rxe0", denial(EventKind::denied, Resource::commands_per_s, Reason::grant), 3);
    counts.add("lab", "rxe0", denial(EventKind::delayed, Resource::commands_per_s), 3);
    input.denials = counts.all();
    const auto text = metrics_text(input);
    CHECK(has_line(text, R"(rdmaquota_rate_limit{tenant="lab",device="rxe0",rate="commands_per_s"} 2000)"));
    CHECK(has_line(text, R"(rdmaquota_delayed_calls_total{tenant="lab",device="rxe0",rate="commands_per_s"} 412)"));
    CHECK(has_line(text, R"(rdmaquota_delayed_seconds_total{tenant="lab",device="rxe0",rate="commands_per_s"} 3.205)"));
    CHECK(has_line(text, R"(rdmaquota_denied_total{tenant="lab",device="rxe0",resource="commands_per_s",reason="grant"} 3)"));
    CHECK(has_line(text, R"(rdmaquota_denied_total{tenant="lab",device="rxe0",resource="commands_per_s",reason="configured"} 0)"));
    CHECK_FALSE(has(text, "registered_per_s"));
}

TEST_CASE("a falsified ledger makes a bounded number of counters, with names that are known") {
    DenialCounts counts;
    for (std::uint32_t i = 0; i < 2000; ++i) {
        auto event = denial(EventKind::denied, Resource::qp);
        event.reason = i;
        counts.add("lab", fmt::format("device{}", i), event, 1);
        event.kind = static_cast<EventKind>(i);
        event.error = i * 1000003;
        counts.add("lab", "rxe0", event, 1);
    }
    CHECK(counts.all().at("lab").size() <= DenialCounts::most + 4);
    counts.keep([](const std::string&) { return false; });
    CHECK(counts.all().empty());
}

TEST_CASE("metrics have the guard's figures where there is one") {
    MetricsInput input;
    CHECK(has_line(metrics_text(input), "rdmaquota_guard_mode 0"));
    CHECK_FALSE(has(metrics_text(input), "rdmaquota_guard_killed_total"));
    input.guard = {2, 1, 1, {{{"lab/ann", "rxe0", "mr_bytes"}, 4096}}, {{{"lab/ann", "rxe0", "mr_bytes"}, 7}}};
    const auto text = metrics_text(input);
    CHECK(has_line(text, "rdmaquota_guard_mode 2"));
    CHECK(has_line(text, "rdmaquota_guard_exceeded_total 1"));
    CHECK(has_line(text, "rdmaquota_guard_killed_total 1"));
    CHECK(has_line(text, R"(rdmaquota_kernel_usage{tenant="lab/ann",device="rxe0",resource="mr_bytes"} 4096)"));
    CHECK(has_line(text, R"(rdmaquota_guard_refused_total{tenant="lab/ann",device="rxe0",resource="mr_bytes"} 7)"));
}

TEST_CASE("names out of the ledger cannot break the format, and a family without samples is left out") {
    Exposition out;
    out.gauge("nothing", "Nothing.");
    out.counter("some_total", "Some.");
    out.sample({{"device", "a\"b\\c\nd"}}, 1);
    out.sample({}, 2);
    CHECK(out.text() == "# HELP some_total Some.\n# TYPE some_total counter\n"
                        "some_total{device=\"a\\\"b\\\\c\\\\x0ad\"} 1\nsome_total 2\n");
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

TEST_CASE("a transient tenant never has a label of its own") {
    const auto labels = metrics_labels({{"jobs/#1", "jobs/1", "jobs/*", true}, {"jobs", "jobs", ""}});
    CHECK(labels == std::vector<std::string>{"jobs/*", "jobs"});
}

TEST_CASE("the sum of a label never falls, whoever goes or gets another label") {
    LabelSums<std::string> sums;
    const auto all = [](const std::string&) { return true; };
    sums.add("a", "user/{user}", "qp", 5);
    sums.add("b", "user/{user}", "qp", 7);
    sums.end_round(all);
    CHECK(sums.all().at("user/{user}").at("qp") == 12);
    sums.add("a", "user/{user}", "qp", 6);  // b is gone
    sums.end_round(all);
    CHECK(sums.all().at("user/{user}").at("qp") == 13);
    sums.add("a", "a", "qp", 8);  // it has a label of its own now
    sums.add("b", "user/{user}", "qp", 1);  // another one of that name
    sums.end_round(all);
    CHECK(sums.all().at("user/{user}").at("qp") == 14);
    CHECK(sums.all().at("a").at("qp") == 2);
    sums.add("a", "a", "qp", 3);  // began anew
    sums.end_round([](const std::string& label) { return label == "a"; });
    CHECK(sums.all().at("a").at("qp") == 5);
    CHECK(sums.all().size() == 1);
}

TEST_CASE("churn counts what is made from the first look on, also by those that ended meanwhile") {
    Churn churn;
    const auto lab = [](const KernelUse&) { return std::string("lab"); };
    churn.add({use(7, 100, 90)}, {}, lab);
    CHECK(churn.all().empty());
    churn.add({use(7, 103, 91), use(8, 5, 0)}, {}, lab);
    auto counts = churn.all().at({"lab", "rxe0"});
    CHECK(counts.created[index(Resource::qp)] == 8);
    CHECK(counts.destroyed[index(Resource::qp)] == 1);
    churn.add({use(8, 5, 1)}, {use(7, 104, 104), use(9, 2, 2)}, lab);
    counts = churn.all().at({"lab", "rxe0"});
    CHECK(counts.created[index(Resource::qp)] == 9);
    CHECK(counts.destroyed[index(Resource::qp)] == 15);
    CHECK(churn.all().at({"", "rxe0"}).created[index(Resource::qp)] == 2);
    churn.add({use(7, 1, 0)}, {}, lab);  // the pid came again
    CHECK(churn.all().at({"lab", "rxe0"}).created[index(Resource::qp)] == 10);
    churn.keep([](const std::string& tenant) { return tenant == "lab"; });
    CHECK(churn.all().size() == 1);
}

TEST_CASE("churn counts nothing twice of who closed its file while the kernel's tables were read") {
    Churn churn;
    const auto lab = [](const KernelUse&) { return std::string("lab"); };
    churn.add({}, {}, lab);
    churn.add({use(7, 3, 0)}, {}, lab);
    churn.add({}, {}, lab);  // in neither table
    churn.add({use(7, 4, 4)}, {}, lab);
    CHECK(churn.all().at({"lab", "rxe0"}).created[index(Resource::qp)] == 4);
}
