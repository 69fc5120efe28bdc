// rdmaquota show: usage, limits and peaks, and which process uses what.
#include <algorithm>
#include <cstdio>
#include <ctime>
#include <memory>
#include <span>
#include <utility>

#include <fmt/core.h>

#include "tools/common/views/findings.hpp"
#include "shm/paths.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/limits/limit_list.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/tenants/pod_names.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/events/event_text.hpp"
#include "tools/common/guard/guard_counts.hpp"
#include "tools/rdmaquota/commands/history.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/common/views/snapshot_json.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/view/event_filter.hpp"
#include "tools/rdmaquota/view/event_source.hpp"
#include "tools/rdmaquota/view/summary.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string tenant;
    bool json = false;
    bool history = false;
    bool limits = false;
    bool summary = false;
    std::string sort, user;
    int top = 0;
    std::vector<std::string> devices, resources;
};

void print_title(const Terminal& terminal, const TenantView& tenant) {
    const bool node = tenant.name == node_tenant;
    const auto pod = pod_of_tenant(tenant.name);
    const auto who = (node ? "the node, all tenants together" : "tenant " + printable(tenant.name)) +
                     (pod.empty() ? "" : " (pod " + printable(pod) + ")") +
                     (tenant.is_partial ? ", of which you may see these figures only" : "");
    fmt::print("{}", coloured(terminal, Colour::bold, who));
    const std::string mode = tenant.mode == Mode::audit ? "(mode audit: limits are watched, nothing is denied)"
                             : tenant.mode == Mode::off ? "(mode off: nothing is counted or denied)"
                                                        : "";
    const bool fits = terminal.width == 0 || cells_of(who) + 2 + mode.size() <= terminal.width;
    fmt::print("{}{}\n\n", mode.empty() ? "" : fits ? "  " : "\n", mode);
}

// "11 +" above a soft limit, as repquota(8) has it; behind it what is left of the grace period.
std::string usage_words(const ResourceView& view) {
    return format_amount(view.resource, view.usage) + (view.above_soft() ? " +" : "");
}

std::string duration_words(std::uint64_t seconds) {
    if (seconds >= 2 * 24 * 3600) return fmt::format("{}d", seconds / (24 * 3600));
    if (seconds >= 2 * 3600) return fmt::format("{}h", seconds / 3600);
    return seconds >= 120 ? fmt::format("{}min", seconds / 60) : fmt::format("{}s", seconds);
}

// What is soft, reserved or owed.
std::string notes_on(const ResourceView& view, bool guarded) {
    std::string text;
    const auto add = [&](const std::string& note) { text += (text.empty() ? "" : ", ") + note; };
    if (view.soft != unlimited) add(fmt::format("soft {}", format_amount(view.resource, view.soft)));
    if (view.above_soft())
        add(view.grace_left_s() != 0 ? fmt::format("{} of grace left", duration_words(view.grace_left_s()))
                                     : "grace is over");
    if (view.guarantee != 0) add(fmt::format("guaranteed {}", format_amount(view.resource, view.guarantee)));
    if (view.refused != 0) add(fmt::format("the guard {} {}", guarded ? "refused" : "would have refused", view.refused));
    if (view.debt() != 0) add(fmt::format("{} above its share", format_amount(view.resource, view.debt())));
    if (view.earmarked != 0) add(fmt::format("{} earmarked for it", format_amount(view.resource, view.earmarked)));
    return text;
}

bool has_kernel_counts(const TenantView& tenant) {
    return std::any_of(tenant.devices.begin(), tenant.devices.end(), [](const DeviceView& device) {
        return std::any_of(device.resources.begin(), device.resources.end(),
                           [](const ResourceView& view) { return view.kernel.has_value(); });
    });
}

void print_devices(const Terminal& terminal, const TenantView& tenant) {
    if (tenant.devices.empty()) return fmt::print("nothing is used, and no device has a limit\n");
    const bool guarded = has_kernel_counts(tenant);
    Table table({"DEVICE", "RESOURCE", "USAGE", guarded ? "KERNEL" : "", "LIMIT", "PEAK", "", ""},
                {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right, Align::left, Align::left});
    for (const auto& device : tenant.devices)
        for (const auto& view : device.resources) {
            const bool limited = terminal.is_terminal && view.limit != unlimited;
            table.add({printable(device.name), std::string(info(view.resource).name),
                       usage_words(view), view.kernel ? format_amount(view.resource, *view.kernel) : "",
                       format_amount(view.resource, view.limit, view.reason == Reason::configured ? view.written : unset),
                       view.peak ? format_amount(view.resource, *view.peak) : "-",
                       limited ? bar(terminal, view.used(), view.limit) : "", notes_on(view, tenant.is_guarded)});
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

void print_rates(const Terminal& terminal, const TenantView& tenant) {
    if (tenant.rates.empty()) return;
    Table table({"DEVICE", "RATE", "A SECOND", "BURST", "DELAYED", "BY"},
                {Align::left, Align::left, Align::right, Align::right, Align::right, Align::right});
    for (const auto& view : tenant.rates) {
        const auto known = view.device == total_device ? "-" : std::to_string(view.delays.calls);
        table.add({printable(view.device), std::string(info(view.rate).name), format_amount(view.rate, view.limit),
                   view.burst == unlimited ? format_amount(view.rate, view.limit) : format_amount(view.rate, view.burst), known,
                   view.delays.calls == 0 ? "-" : seconds_words(view.delays.ns)});
    }
    fmt::print("\n");
    table.print(terminal);
}

// Of those that have another pid where they run.
void print_containers(const Terminal& terminal, const TenantView& tenant) {
    Table table({"PID", "THERE", "CGROUP OF THE CONTAINER"}, {Align::right, Align::right, Align::left});
    std::size_t count = 0;
    for (const auto& process : tenant.processes) {
        if (process.inner_pid == 0) continue;
        const auto cgroup = process.cgroup.empty() ? "-" : printable(process.cgroup);
        table.add({pid_text(process), std::to_string(process.inner_pid), cgroup});
        ++count;
    }
    if (count == 0) return;
    fmt::print("\n");
    table.print(terminal);
}

void print_processes(const Terminal& terminal, const TenantView& tenant) {
    if (tenant.processes.empty()) return fmt::print("\nno process has a device open\n");
    Table table({"PID", "USER", "COMMAND", "DEVICE", "USES"},
                {Align::right, Align::left, Align::left, Align::left, Align::left});
    for (const auto& process : tenant.processes) {
        const auto pid = pid_text(process), user = printable(user_name(process.uid));
        const auto comm = printable(process.comm);
        for (const auto& device : process.devices) table.add({pid, user, comm, printable(device.name), uses(device)});
        if (process.devices.empty()) table.add({pid, user, comm, "-", "nothing"});
    }
    fmt::print("\n");
    table.print(terminal);
    print_containers(terminal, tenant);
}

void print_bypasses(const Terminal& terminal, const std::vector<BypassView>& views, bool held) {
    if (views.empty()) return;
    Table table({"PID", "USER", "TENANT", "COMMAND", "DEVICE", held ? "HELD BY THE GUARD ALONE WITH" : "GOES AROUND THE QUOTA WITH"},
                {Align::right, Align::left, Align::left, Align::left, Align::left, Align::left});
    for (const auto& view : views) {
        std::string text;
        for (const auto& [resource, amount] : view.excess)
            text += fmt::format("{}{} {}", text.empty() ? "" : ", ", info(resource).name,
                                format_amount(resource, amount));
        const auto user = user_of_process(view.pid);
        table.add({std::to_string(view.pid), user ? printable(user_name(*user)) : "-", printable(view.tenant),
                   printable(view.comm), printable(view.device), text});
    }
    fmt::print("\n");
    table.print(terminal);
}

void print_held_limits(const Terminal& terminal, const std::vector<LimitsWriter::Held>& limits, bool shares) {
    const char* title = shares ? "shares of what the tenants above may use" : "limits that are not as configured at present";
    for (const auto& held : limits) {
        if (held.is_share() != shares) continue;
        if (const auto* text = std::exchange(title, nullptr)) fmt::print("\n{}\n", text);
        const auto line =
            fmt::format("  {} {} of {}: {} instead of {} since {}; {}", printable(held.device),
                        info(held.resource).name, held.scope == Scope::process ? "each process" : "the tenant",
                        format_amount(held.resource, held.limit), format_amount(held.resource, held.configured),
                        event_time(held.since_s * 1'000'000'000, true).substr(0, 19),
                        held.why.empty() ? std::string(name(held.reason)) : printable(held.why));
        fmt::print("{}\n", wrapped(terminal, line, 4));
    }
}

std::vector<LimitView> all_limits(const TenantReading& tenant) {
    const auto limits = LimitsSegment::open(limits_path(tenant.place.here), LimitsSegment::Parts::all);
    return limits ? limits_in_force(*limits) : std::vector<LimitView>();
}

void print_tenant(const Terminal& terminal, const TenantReading& tenant, bool named) {
    print_title(terminal, tenant.view);
    print_devices(terminal, tenant.view);
    print_rates(terminal, tenant.view);
    // Where nothing is used, as at the beginning of a `run`, what will hold is of most interest.
    if (tenant.view.processes.empty() && tenant.place.key.empty() && !tenant.place.here.empty()) {
        fmt::print("\n");
        print_limits(terminal, all_limits(tenant));
    }
    print_held_limits(terminal, tenant.held, false);
    if (named) print_held_limits(terminal, tenant.held, true);  // on a node with limits of its own every tenant has shares
    if (tenant.place.has_ledger() || !tenant.view.processes.empty()) print_processes(terminal, tenant.view);
}

bool uses_something(const TenantReading& tenant) {
    return !tenant.view.processes.empty() || std::any_of(tenant.view.devices.begin(), tenant.view.devices.end(),
                                                         [](const DeviceView& device) { return is_used(device); });
}

// Where none is named: `default`, and of the others those that use something.
void print_tenants(const Terminal& terminal, const std::vector<TenantReading>& tenants, bool named) {
    std::size_t idle = 0;
    bool first = true;
    for (const auto& tenant : tenants) {
        if (!named && tenants.size() > 1 && !uses_something(tenant) && tenant.view.name != default_tenant) {
            idle += tenant.view.is_partial ? 0 : 1;
            continue;
        }
        if (!std::exchange(first, false)) fmt::print("\n");
        print_tenant(terminal, tenant, named);
    }
    if (idle != 0)
        fmt::print("{}{} other tenant{} use{} nothing; 'rdmaquota tenant list' names all\n", first ? "" : "\n", idle,
                   idle == 1 ? "" : "s", idle == 1 ? "s" : "");
}

// Tenants with the same limits, such as those of a template, have one list.
void print_all_limits(const Terminal& terminal, const std::vector<TenantReading>& tenants) {
    std::vector<std::pair<std::string, std::vector<const TenantReading*>>> lists;
    for (const auto& tenant : tenants) {
        auto same = fmt::format("{} {}", name(tenant.view.mode), limits_json(all_limits(tenant)).dump());
        const auto found = std::find_if(lists.begin(), lists.end(), [&](const auto& list) { return list.first == same; });
        if (found != lists.end()) found->second.push_back(&tenant);
        else lists.push_back({std::move(same), {&tenant}});
    }
    for (const auto& [text, members] : lists) {
        if (&text != &lists.front().first) fmt::print("\n");
        print_title(terminal, members.front()->view);
        print_limits(terminal, all_limits(*members.front()));
        std::string others;
        for (const auto* member : std::span(members).subspan(1)) others += (others.empty() ? "" : ", ") + printable(member->view.name);
        if (!others.empty()) fmt::print("{}\n", wrapped(terminal, "the same: " + others, 2));
    }
}

// Null where nobody knows.
Json bypasses_of(const std::string& tenant, const Json& around) try {
    if (!around.is_array()) return Json();
    Json list = Json::array();
    for (const auto& bypass : around)
        if (bypass.value("tenant", std::string(default_tenant)) == tenant) list.push_back(bypass);
    return list;
} catch (const Json::exception&) {  // a sidecar of another version
    return Json();
}

Json to_json(const std::vector<TenantReading>& tenants, const Json& around) {
    Json list = Json::array();
    for (const auto& tenant : tenants) {
        auto json = tenant_json(tenant.view);
        json["changed_limits"] = held_json(tenant.held);
        json["limits"] = limits_json(all_limits(tenant));
        json["bypasses"] = bypasses_of(tenant.view.name, around);
        list.push_back(std::move(json));
    }
    return list;
}

Result<Narrowing> narrowing_of(const Options& options) {
    auto to = narrowing(options.devices, options.resources);
    if (to && !options.user.empty() && !(to->user = user_id(options.user)))
        return Error{fmt::format("there is no user '{}'", printable(options.user))};
    return to;
}

// How many lines everything takes: at least.
std::size_t lines_of(const std::vector<TenantReading>& tenants) {
    constexpr std::size_t titles = 5;
    std::size_t lines = 0;
    for (const auto& tenant : tenants) {
        if (!uses_something(tenant)) continue;
        lines += titles + tenant.view.processes.size();
        for (const auto& device : tenant.view.devices) lines += device.resources.size();
    }
    return lines;
}

int print_summary(const Options& options, const std::vector<TenantReading>& tenants, const Narrowing& to, const Json& bypasses, bool held) {
    const auto order = summary_order(options.sort.empty() ? "full" : options.sort);
    if (!order) return wrong_usage(fmt::format("--sort takes full, name or a resource, not '{}'", printable(options.sort)));
    auto lines = summarize(tenants, *order);
    const auto idle = options.json ? 0 : std::erase_if(lines, [](const SummaryLine& line) { return !line.uses_something(); });
    const auto most = static_cast<std::size_t>(options.top);
    if (options.json) fmt::print("{}\n", dump(Json{{"version", 1}, {"tenants", summary_json(lines, most)}}));
    else summary_table(lines, most, to.resources).print(standard_output());
    if (idle != 0) fmt::print("{} tenant{} nothing\n", idle, idle == 1 ? " uses" : "s use");
    if (!options.json) print_bypasses(standard_output(), bypass_views(bypasses), held);
    return status_done;
}

std::vector<std::string> denied_since(const std::string& directory, const std::string& since) {
    EventSource source(directory);
    if (!source.open()) return {};
    return denial_lines(source.take(), since);
}

// Prints a screenful: the fullest tenants, recent denials, and how to see more.
void print_screenful(const Session& session, const Terminal& terminal, const std::vector<TenantReading>& tenants) {
    constexpr std::size_t other_lines = 12, least = 3, most_denials = 4;
    const auto lines = summarize(tenants, {});
    const auto used = static_cast<std::size_t>(
        std::count_if(lines.begin(), lines.end(), [](const auto& line) { return line.uses_something(); }));
    const auto shown = std::min(std::max(terminal.height, other_lines + least) - other_lines, used);
    summary_table(lines, shown, {}).print(terminal);
    const auto hour_ago = parse_since("1h", std::time(nullptr));
    const auto denied = denied_since(session.directory, hour_ago ? *hour_ago : "");
    fmt::print("\n{}\n", denied.empty() ? "nothing was denied in the last hour" : "denied in the last hour");
    for (std::size_t i = 0; i < std::min(denied.size(), most_denials); ++i) fmt::print("  {}\n", wrapped(terminal, denied[i], 4));
    if (denied.size() > most_denials) fmt::print("  and {} more; 'rdmaquota events' lists them\n", denied.size() - most_denials);
    const auto more = fmt::format("{} of {} tenants that use something; 'show --summary' lists all, 'show TENANT' its devices and "
                                  "processes, 'show | less' everything", shown, used);
    fmt::print("\n{}\n", wrapped(terminal, more, 0));
}

int show(const Options& options, const Session& session) {
    const auto to = narrowing_of(options);
    if (!to) return wrong_usage(to.error());
    const bool summary = options.summary || !options.sort.empty() || options.top != 0;
    if ((options.history || options.limits) && (summary || to->any()))
        return wrong_usage("--history and --limits show all of a tenant: name the tenant, and no device, resource, user or summary");
    if (options.history) return history(session.directory, options.tenant, options.json);
    auto tenants = read_tenants(session.directory, options.tenant);
    if (!tenants) return failed(tenants.error());
    const auto guard = guard_counts(session.directory);
    for (auto& tenant : *tenants) add_guard_counts(guard, tenant.view);
    narrow(*tenants, *to);
    const auto found = findings(session.directory);
    const auto state = guard.value("state", "off");
    if (summary) return print_summary(options, *tenants, *to, found.bypasses, state == "deny");
    if (options.json) {
        fmt::print("{}\n", dump(Json{{"version", 1},
                                   {"guard", {{"state", state}}},
                                   {"capacity", found.capacity.is_array() ? found.capacity : Json::array()},
                                   {"tenants", rdmaquota::to_json(*tenants, found.bypasses)}}));
        return status_done;
    }
    const auto terminal = standard_output();
    if (options.limits) return print_all_limits(terminal, *tenants), status_done;
    if (options.tenant.empty() && !to->any() && terminal.height != 0 && lines_of(*tenants) > terminal.height)
        print_screenful(session, terminal, *tenants);
    else
        print_tenants(terminal, *tenants, !options.tenant.empty() || to->any());
    print_bypasses(terminal, bypass_views(found.bypasses), state == "deny");
    if (state != "off") fmt::print("\nthe guard is {}\n", guard_words(state));
    for (const auto& line : capacity_lines(found.capacity)) fmt::print("\n{}\n", wrapped(terminal, line, 2));
    return status_done;
}

}  // namespace

void add_show(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("show", "Show usage, limits and peaks, and the processes behind them");
    command.optional_word("TENANT", options->tenant, "Tenant instead of all that use something");
    command.flag("--json", options->json, "Write JSON");
    command.flag("--limits", options->limits, "Show every limit in force instead, used or not");
    command.flag("--summary", options->summary, "Show one line per tenant, the fullest first");
    command.option("--sort", "ORDER", options->sort, "With --summary: full, name, or the resource of which most is used");
    command.positive("--top", "N", options->top, "With --summary: the first N only");
    command.list("--device", "DEVICE", options->devices, "Only of this device");
    command.list("--resource", "RESOURCE", options->resources, "Only of this resource");
    command.option("--user", "USER", options->user, "Only tenants in which this user has a process, and these");
    command.flag("--history", options->history, "Show how usage went, as rdmaquotad has seen it");
    command.action([options, &session] { return show(*options, session); });
}

}  // namespace rdmaquota
