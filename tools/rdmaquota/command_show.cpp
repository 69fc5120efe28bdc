// rdmaquota show: usage, limits and peaks, and which process uses what.
#include <cstdio>
#include <memory>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "shm/paths.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/json.hpp"
#include "tools/rdmaquota/snapshot.hpp"
#include "tools/rdmaquota/terminal.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string tenant;
    bool json = false;
};

Json to_json(const std::vector<DeviceView>& devices, bool with_peak) {
    Json result = Json::object();
    for (const auto& device : devices)
        for (const auto& view : device.resources) {
            auto& entry = result[device.name][std::string(info(view.resource).name)];
            entry = {{"usage", view.usage}, {"limit", limit_json(view.limit)}};
            if (with_peak) entry["peak"] = view.peak ? Json(*view.peak) : Json(nullptr);
        }
    return result;
}

Json to_json(const std::vector<ActivityView>& activity) {
    // By number of enum ibv_qp_state.
    static constexpr const char* states[qp_states] = {"reset", "init", "rtr", "rts", "sqd", "sqe", "err"};
    Json result = Json::object();
    for (const auto& [device, counts] : activity) {
        auto& entry = result[device];
        entry["cq_events"] = counts.cq_events;
        for (std::size_t state = 0; state < qp_states; ++state)
            entry["qp"][states[state]] = {{"done", counts.qp_to[state]}, {"failed", counts.qp_failed[state]}};
    }
    return result;
}

void print_json(const TenantView& tenant) {
    Json processes = Json::array();
    for (const auto& process : tenant.processes)
        processes.push_back({{"pid", process.pid},
                             {"comm", process.comm},
                             {"devices", to_json(process.devices, false)},
                             {"activity", to_json(process.activity)}});
    const Json one{{"name", tenant.name},
                   {"mode", name(tenant.mode)},
                   {"devices", to_json(tenant.devices, true)},
                   {"activity", to_json(tenant.activity)},
                   {"processes", std::move(processes)}};
    fmt::print("{}\n", dump(Json{{"version", 1}, {"tenants", Json::array({one})}}));
}

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

int show(const Options& options, const Session& session) {
    if (const auto known = check_tenant(options.tenant); !known) return failed(known.error());
    const auto policy = PolicySegment::open(policy_path(session.directory));
    if (!policy) return failed(policy.error());
    auto ledger = Ledger::open(ledger_path(session.directory));
    if (!ledger) return failed(ledger.error());
    ledger->reap();
    const auto tenant = take_snapshot(ledger.value(), policy.value());
    if (options.json) {
        print_json(tenant);
        return status_done;
    }
    const auto terminal = standard_output();
    print_title(terminal, tenant);
    print_devices(terminal, tenant);
    print_processes(terminal, tenant);
    return status_done;
}

}  // namespace

void add_show(CLI::App& app, Session& session) {
    const auto options = std::make_shared<Options>();
    options->tenant = default_tenant;
    auto* command = app.add_subcommand("show", "Show usage, limits and peaks, and the processes behind them");
    command->add_option("TENANT", options->tenant, "Tenant; the only one of this version is 'default'")->type_name("");
    command->add_flag("--json", options->json, "Write JSON");
    command->callback([options, &session] { session.status = show(*options, session); });
}

}  // namespace rdmaquota
