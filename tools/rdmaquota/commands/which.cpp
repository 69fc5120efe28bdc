// rdmaquota which: in which tenant a process is that opens a device now, by which rule, and what is left for it.
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/node_policy.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/json.hpp"
#include "tools/common/match_text.hpp"
#include "tools/common/read_tenants.hpp"
#include "tools/common/subject.hpp"
#include "tools/common/tenants.hpp"
#include "tools/common/terminal.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

struct Options {
    int pid = 0;  // 0: this process, as what is started from here would be
    bool json = false;
};

struct Found {
    TenantPlace place;
    std::string why;
    std::vector<std::string> notes;
};

bool same_directory(const std::string& a, const std::string& b) {
    struct stat first {
    }, second{};
    return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

// In a container, the quota directory that the process sees may be one tenant's own. What it shows is the process's word:
// only which of this node's directories it is counts, and that one is read.
std::optional<Result<Found>> find_mounted(int pid, const std::string& directory) {
    const auto seen = fmt::format("/proc/{}/root{}", pid, directory);
    if (!directory.starts_with('/') || !is_own_directory(seen) || same_directory(seen, directory)) return std::nullopt;
    for (const auto& place : tenant_places(directory))
        if (same_directory(place.here, seen)) return Found{place, "its directory is mounted there", {}};
    return Error{fmt::format("the process has a {} of its own, which is none of this node's tenants", directory)};
}

Result<Found> find(int pid, const std::string& directory) {
    if (is_own_directory(directory)) return Found{{"", directory}, "the directory is its own", {}};
    if (auto mounted = find_mounted(pid, directory)) return *mounted;
    const auto policy = NodePolicy::read(node_policy_path(directory));
    if (!policy) return Error{policy.error()};
    const auto subject = ProcessSubject::of(pid);
    if (!subject) return Error{subject.error()};
    const auto verdict = policy->find(subject->view());
    Found found{{verdict.tenant, here_path(directory, verdict.tenant)}, match_words(policy->decompile(), verdict), {}};
    if (verdict.hidden)
        found.notes.push_back("its cgroup cannot be read here, so that no match by cgroup or unit was tried");
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

// What is left on a device: the least of what the limits of tenant and process leave.
struct Room {
    std::string device;
    Resource resource;
    Scope scope;
    std::uint64_t usage, limit;
};

std::vector<Room> rooms(const TenantView& tenant, const LimitsSegment& limits, int pid) {
    std::vector<Room> found;
    for (const auto& device : tenant.devices)
        for (const auto& view : device.resources)
            if (view.limit != unlimited)
                found.push_back({device.name, view.resource, Scope::tenant, view.usage, view.limit});
    // Without a device, what will hold for each.
    if (tenant.devices.empty())
        for (const auto& row : resource_table)
            if (const auto limit = limits.limit(Scope::tenant, any_device, row.id); limit != unlimited)
                found.push_back({std::string(any_device), row.id, Scope::tenant, 0, limit});
    const auto process = std::find_if(tenant.processes.begin(), tenant.processes.end(), [pid](const ProcessView& one) {
        return one.pid == static_cast<std::uint32_t>(pid);
    });
    for (const auto& name : devices_of(tenant, limits))
        for (const auto& row : resource_table) {
            const auto limit = limits.limit(Scope::process, name, row.id);
            if (limit == unlimited) continue;
            const auto used = process == tenant.processes.end() ? 0 : usage_of(process->devices, name, row.id);
            found.push_back({name, row.id, Scope::process, used, limit});
        }
    return found;
}

std::uint64_t left(const Room& room) { return room.limit - std::min(room.limit, room.usage); }

void print_rooms(const std::vector<Room>& rooms) {
    if (rooms.empty()) return fmt::print("\nnothing is limited there\n");
    Table table({"DEVICE", "RESOURCE", "LEFT", "USAGE", "LIMIT", "OF"},
                {Align::left, Align::left, Align::right, Align::right, Align::right, Align::left});
    for (const auto& room : rooms)
        table.add({printable(room.device), std::string(info(room.resource).name), format_amount(room.resource, left(room)),
                   format_amount(room.resource, room.usage), format_amount(room.resource, room.limit),
                   room.scope == Scope::process ? "each process" : "the tenant"});
    fmt::print("\n");
    table.print(standard_output());
}

Json rooms_json(const std::vector<Room>& rooms) {
    Json list = Json::array();
    for (const auto& room : rooms)
        list.push_back({{"device", room.device},
                        {"resource", info(room.resource).name},
                        {"scope", name(room.scope)},
                        {"usage", room.usage},
                        {"limit", room.limit},
                        {"left", left(room)}});
    return list;
}

int which(const Options& options, const Session& session) {
    const int pid = options.pid == 0 ? ::getpid() : options.pid;
    const auto found = find(pid, session.directory);
    if (!found) return failed(found.error());
    const auto limits = LimitsSegment::open(limits_path(found->place.here), LimitsSegment::Parts::all);
    if (!limits) return failed(limits.error());
    NodeProcesses processes;
    const auto reading = read_place(found->place, processes);
    std::vector<Room> room;
    if (reading) room = rooms(reading->view, *limits, pid);
    if (options.json) {
        fmt::print("{}\n", dump(Json{{"version", 1}, {"pid", pid}, {"tenant", limits->tenant()}, {"why", found->why},
                                     {"notes", found->notes}, {"mode", name(limits->mode())}, {"left", rooms_json(room)}}));
        return status_done;
    }
    fmt::print("tenant {}: {}\n", printable(limits->tenant()), printable(found->why));
    for (const auto& note : found->notes) fmt::print("note: {}\n", printable(note));
    if (limits->mode() != Mode::enforce) fmt::print("mode {}: nothing is denied\n", name(limits->mode()));
    if (reading) print_rooms(room);
    else fmt::print("what is left cannot be seen: {}\n", printable(reading.error()));
    return status_done;
}

}  // namespace

void add_which(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("which", "Show in which tenant a process is, by which rule, and what is left for it");
    command.positive("--pid", "PID", options->pid, "A running process instead of a program started from here");
    command.flag("--json", options->json, "Write JSON");
    command.action([options, &session] { return which(*options, session); });
}

}  // namespace rdmaquota
