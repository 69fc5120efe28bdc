// rdmaquota which: in which tenant a process is that opens a device now, by which rule, and what it may still create.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "policy/environment.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/open_inside.hpp"
#include "shm/paths.hpp"
#include "shm/policy/node_policy.hpp"
#include "shm/same_file.hpp"
#include "tools/common/events/event_text.hpp"
#include "tools/common/guard/guard_counts.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/match_text.hpp"
#include "tools/common/process/memory_lock.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/open_file.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/common/limits/room.hpp"
#include "tools/common/tenants/subject.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

struct Options {
    int pid = 0;  // 0: this process, as what is started from here would be
    std::string user;
    bool json = false;
};

struct Found {
    TenantPlace place;
    std::string why;
    std::vector<std::string> notes;
};

// In a container, the quota directory that the process sees may be one tenant's own. What it shows is the process's word:
// only which of this node's directories it is counts, and that one is read.
std::optional<Result<Found>> find_mounted(int pid, const std::string& directory) {
    if (!directory.starts_with('/')) return std::nullopt;
    const OpenFile mounted(open_directory_inside(fmt::format("/proc/{}/root", pid), directory));
    const auto seen = fmt::format("/proc/self/fd/{}", mounted.fd());
    if (!mounted || !is_own_directory(seen) || same_file(seen, directory)) return std::nullopt;
    for (const auto& place : tenant_places(directory))
        if (same_file(place.here, seen)) return Found{place, "its directory is mounted there", {}};
    return Error{fmt::format("the process sees a {} of its own, which belongs to no tenant of this node", directory)};
}

Result<NodePolicy::Verdict> verdict_of(const NodePolicy& policy, int pid, const std::string& user) {
    if (const auto ids = user.empty() ? std::nullopt : ids_of_user(user)) return policy.find({ids->user, ids->group, ids->groups, {}});
    if (!user.empty()) return Error{fmt::format("there is no user '{}'", printable(user))};
    const auto subject = ProcessSubject::of(pid);
    if (!subject) return Error{subject.error()};
    return policy.find(subject->view());
}

// Of the process, or with `user` of one of that user's, in whatever cgroup; `pid` is then 0.
Result<Found> find(int pid, const std::string& user, const std::string& directory) {
    if (is_own_directory(directory)) return Found{{"", directory}, "the directory is its own", {}};
    if (user.empty())
        if (auto mounted = find_mounted(pid, directory)) return *mounted;
    const auto policy = NodePolicy::read(node_policy_path(directory));
    if (!policy) return Error{policy.error()};
    const auto decided = verdict_of(*policy, pid, user);
    if (!decided) return Error{decided.error()};
    const auto& verdict = *decided;
    Found found{{verdict.tenant, here_path(directory, verdict.tenant)}, match_words(policy->decompile(), verdict), {}};
    if (verdict.hidden)
        found.notes.push_back(user.empty() ? "its cgroup cannot be read here, so that no match by cgroup or unit was tried"
                                           : "no match by cgroup or unit was tried; --pid tries those, too");
    if (::access(limits_path(found.place.here).c_str(), F_OK) != 0) {
        found.notes.push_back(fmt::format("tenant {} has not been made yet: until rdmaquotad or 'rdmaquota reload' "
                                          "makes it, the process is charged in tenant {}", verdict.tenant, default_tenant));
        found.place = {std::string(default_tenant), here_path(directory)};
    }
    if (::access(data_path(ledger_path(found.place.here)).c_str(), F_OK) == 0 && pid == ::getpid() &&
        ::access(data_path(ledger_path(found.place.here)).c_str(), R_OK | W_OK) != 0)
        found.notes.push_back("this user is no member of the tenant and cannot be charged there");
    return found;
}

void print_rooms(const std::vector<Bound>& rooms, bool says_nothing) {
    if (rooms.empty() && says_nothing) fmt::print("\nnothing is limited there\n");
    if (rooms.empty()) return;
    Table table({"DEVICE", "RESOURCE", "ROOM", "USAGE", "LIMIT", "WHOSE"},
                {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left});
    for (const auto& bound : rooms)
        table.add({printable(bound.device), std::string(info(bound.resource).name),
                   format_amount(bound.resource, bound.room()), format_amount(bound.resource, bound.usage),
                   format_amount(bound.resource, bound.limit, bound.written), whose(bound)});
    fmt::print("\n");
    table.print(standard_output());
}

void print_rates(const std::vector<RateBound>& rates, const LimitsSegment& limits) {
    if (rates.empty()) return;
    Table table({"DEVICE", "RATE", "A SECOND", "BURST", "WHOSE"}, {Align::left, Align::left, Align::right, Align::right, Align::left});
    for (const auto& bound : rates)
        table.add({printable(bound.device), std::string(info(bound.rate).name), format_amount(bound.rate, bound.limit),
                   format_amount(bound.rate, bound.burst), bound.scope == Scope::process ? "this process" : "the tenant"});
    fmt::print("\n");
    table.print(standard_output());
    fmt::print("a call waits for up to {} (max_delay), and is denied otherwise\n", seconds_words(limits.max_delay_ns()));
}

Json rates_json(const std::vector<RateBound>& rates) {
    Json list = Json::array();
    for (const auto& bound : rates)
        list.push_back({{"device", bound.device}, {"rate", info(bound.rate).name}, {"scope", name(bound.scope)},
                        {"limit", bound.limit}, {"burst", bound.burst}});
    return list;
}

Json rooms_json(const std::vector<Bound>& bounds, const char* room) {
    Json list = Json::array();
    for (const auto& bound : bounds) {
        list.push_back({{"device", bound.device},
                        {"resource", info(bound.resource).name},
                        {"scope", name(bound.scope)},
                        {"total", bound.total},
                        {"usage", bound.usage},
                        {"limit", bound.limit},
                        {room, bound.room()}});
        add_percent(list.back(), bound.written);
    }
    return list;
}

// What bounds the process beside this tenant.
std::vector<std::string> other_bounds(int pid, const Session& session) {
    std::vector<std::string> notes;
    if (const auto lock = memory_lock(pid); lock && lock->bounds())
        notes.push_back(fmt::format("it may pin {} of memory (RLIMIT_MEMLOCK), of which {} are pinned",
                                    format_amount(Resource::mr_bytes, lock->limit),
                                    format_amount(Resource::mr_bytes, lock->pinned)));
    if (session.directory != system_directory && std::filesystem::exists(node_policy_path(system_directory)))
        notes.push_back(fmt::format("the node's policy holds as well: rdmaquota --dir {} which", system_directory));
    const auto environment = read_environment([](const char* name) -> const char* { return ::secure_getenv(name); });
    const auto tightens = [](const LimitRow& row) {
        return std::any_of(row.begin(), row.end(), [](std::uint64_t limit) { return limit != unset; });
    };
    if (pid == ::getpid() && (tightens(environment.process) || tightens(environment.tenant) ||
                              !environment.process_devices.empty() || !environment.tenant_devices.empty()))
        notes.push_back("variables of the environment (RDMAQUOTA_LIMIT and others) tighten these limits further");
    return notes;
}

int which(const Options& options, const Session& session) {
    if (options.pid != 0 && !options.user.empty()) return wrong_usage("--pid and --user exclude each other");
    const int pid = options.pid == 0 && options.user.empty() ? ::getpid() : options.pid;
    auto found = find(pid, options.user, session.directory);
    if (!found) return failed(found.error());
    for (auto& note : other_bounds(pid, session)) found->notes.push_back(std::move(note));
    const auto limits = LimitsSegment::open(limits_path(found->place.here), LimitsSegment::Parts::all);
    if (!limits) return failed(limits.error());
    NodeProcesses processes;
    auto reading = read_place(found->place, processes);
    if (reading) add_guard_counts(guard_counts(session.directory), reading->view);
    std::vector<Bound> all, room;
    std::vector<RateBound> rates;
    if (reading) all = bounds(reading->view, *limits, pid);
    if (reading) room = tightest(all, reading->view, *limits);
    if (reading) rates = rate_bounds(reading->view, *limits);
    if (options.json) {
        fmt::print("{}\n", dump(Json{{"version", 1}, {"pid", pid == 0 ? Json(nullptr) : Json(pid)}, {"tenant", limits->tenant()}, {"why", found->why},
                                     {"notes", found->notes}, {"mode", name(limits->mode())}, {"left", rooms_json(all, "left")},
                                     {"room", rooms_json(room, "room")}, {"rates", rates_json(rates)},
                                     {"max_delay_ms", limits->max_delay_ms()}}));
        return status_done;
    }
    const auto terminal = standard_output();
    fmt::print("{}\n", wrapped(terminal, fmt::format("tenant {}: {}", printable(limits->tenant()), printable(found->why)), 2));
    for (const auto& note : found->notes) fmt::print("{}\n", wrapped(terminal, "note: " + printable(note), 2));
    if (limits->mode() != Mode::enforce) fmt::print("mode {}: nothing is denied\n", name(limits->mode()));
    if (reading) print_rooms(room, rates.empty());
    else fmt::print("what is left cannot be seen: {}\n", printable(reading.error()));
    print_rates(rates, *limits);
    return status_done;
}

}  // namespace

void add_which(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("which", "Show in which tenant a process is, by which rule, and what it may still create");
    command.positive("--pid", "PID", options->pid, "A running process instead of a program started from here");
    command.option("--user", "USER", options->user, "A process of this user, in no cgroup or unit of its own");
    command.flag("--json", options->json, "Write JSON");
    command.action([options, &session] { return which(*options, session); });
}

}  // namespace rdmaquota
