// rdmaquota show: usage, limits and peaks, and which process uses what.
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "tools/common/bypasses.hpp"
#include "tools/common/json.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/event_text.hpp"
#include "tools/rdmaquota/view/show_history.hpp"
#include "tools/common/limit_changes.hpp"
#include "tools/common/snapshot_json.hpp"
#include "tools/common/terminal.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string tenant;
    bool json = false;
    bool history = false;
};

void print_title(const Terminal& terminal, const TenantView& tenant) {
    fmt::print("{}", coloured(terminal, Colour::bold, "tenant " + tenant.name));
    if (tenant.mode == Mode::audit) fmt::print("  (mode audit: limits are watched, nothing is denied)");
    if (tenant.mode == Mode::off) fmt::print("  (mode off: nothing is counted or denied)");
    fmt::print("\n\n");
}

void print_devices(const Terminal& terminal, const TenantView& tenant) {
    if (tenant.devices.empty()) return fmt::print("nothing is used, and no device has a limit\n");
    Table table({"DEVICE", "RESOURCE", "USAGE", "LIMIT", "PEAK", ""},
                {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left});
    for (const auto& device : tenant.devices)
        for (const auto& view : device.resources) {
            const bool limited = terminal.is_terminal && view.limit != unlimited;
            table.add({printable(device.name), std::string(info(view.resource).name),
                       format_amount(view.resource, view.usage), format_amount(view.resource, view.limit),
                       view.peak ? format_amount(view.resource, *view.peak) : "-",
                       limited ? bar(terminal, view.usage, view.limit) : ""});
        }
    table.print(terminal);
}

std::string uses(const DeviceView& device) {
    std::string text;
    for (const auto& view : device.resources) {
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", info(view.resource).name,
                            format_amount(view.resource, view.usage));
        if (view.limit != unlimited) text += " of " + format_amount(view.resource, view.limit);
    }
    return text;
}

void print_processes(const Terminal& terminal, const TenantView& tenant) {
    if (tenant.processes.empty()) return fmt::print("\nno process has a device open\n");
    Table table({"PID", "COMMAND", "DEVICE", "USES"}, {Align::right, Align::left, Align::left, Align::left});
    for (const auto& process : tenant.processes) {
        const auto pid = std::to_string(process.pid);
        const auto comm = printable(process.comm);
        for (const auto& device : process.devices) table.add({pid, comm, printable(device.name), uses(device)});
        if (process.devices.empty()) table.add({pid, comm, "-", "nothing"});
    }
    fmt::print("\n");
    table.print(terminal);
}

void print_bypasses(const Terminal& terminal, const std::vector<BypassView>& views) {
    if (views.empty()) return;
    Table table({"PID", "COMMAND", "DEVICE", "GOES AROUND THE QUOTA WITH"},
                {Align::right, Align::left, Align::left, Align::left});
    for (const auto& view : views) {
        std::string text;
        for (const auto& [resource, amount] : view.excess)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", info(resource).name,
                                format_amount(resource, amount));
        table.add({std::to_string(view.pid), printable(view.comm), printable(view.device), text});
    }
    fmt::print("\n");
    table.print(terminal);
}

// Limits that the sidecar changed by a rule of the policy.
void print_changes(const LimitsSegment& policy, const std::vector<ChangedLimit>& changes) {
    if (!changes.empty()) fmt::print("\nat present not as configured\n");
    for (const auto& change : changes)
        fmt::print("  {} {} of {}: {} instead of {} since {}; {}\n", printable(change.device),
                   info(change.resource).name, change.scope == Scope::process ? "each process" : "the tenant",
                   format_amount(change.resource, change.limit),
                   format_amount(change.resource, configured_limit(policy, change)),
                   event_time(change.since_s * 1'000'000'000, true).substr(0, 19), printable(change.reason));
}

int history(const Options& options, const Session& session) {
    const auto answer = ask_sidecar(session.directory, Json{{"request", "history"}});
    if (!answer) return failed(answer.error());
    if (options.json)
        fmt::print("{}\n", dump(*answer));
    else
        print_history(standard_output(), *answer);
    return status_done;
}

int show(const Options& options, const Session& session) {
    if (const auto known = check_tenant(options.tenant); !known) return failed(known.error());
    if (options.history) return history(options, session);
    const auto policy = LimitsSegment::open(policy_path(session.directory));
    if (!policy) return failed(policy.error());
    auto ledger = Ledger::open(ledger_path(session.directory));
    if (!ledger) return failed(ledger.error());
    ledger->reap();
    const auto tenant = take_snapshot(ledger.value(), policy.value());
    const auto changes = limit_changes(session.directory, *policy);
    const auto around = bypasses(session.directory);
    if (options.json) {
        auto json = tenant_json(tenant);
        json["changed_limits"] = changes_json(*policy, changes);
        json["bypasses"] = around;
        fmt::print("{}\n", dump(Json{{"version", 1}, {"tenants", Json::array({std::move(json)})}}));
        return status_done;
    }
    const auto terminal = standard_output();
    print_title(terminal, tenant);
    print_devices(terminal, tenant);
    print_changes(*policy, changes);
    print_processes(terminal, tenant);
    print_bypasses(terminal, bypass_views(around));
    return status_done;
}

}  // namespace

void add_show(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    options->tenant = default_tenant;
    auto command = line.command("show", "Show usage, limits and peaks, and the processes behind them");
    command.optional_word("TENANT", options->tenant, "Tenant; the only one of this version is 'default'");
    command.flag("--json", options->json, "Write JSON");
    command.flag("--history", options->history, "Show how usage went, as rdmaquotad has seen it");
    command.action([options, &session] { return show(*options, session); });
}

}  // namespace rdmaquota
