// rdmaquota tenant: adds and removes transient tenants, for job starters; binds containers to tenants; lists all.
#include <unistd.h>

#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "policy/pattern.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "tools/common/tenants/container.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/guard/kept_guard.hpp"
#include "tools/common/shares/divide.hpp"
#include "tools/common/tenants/tenant_files.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/common/tenants/transient.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::vector<std::string> words;  // add NAME, remove NAME, bind NAME, list
    std::string cgroup, user, group, mode;
    std::vector<std::string> members, limits, process_limits;
};

// A user with a cgroup is its member; alone, a match.
Result<void> add_match(const Options& options, TenantPolicy& tenant) {
    Match match{options.cgroup.empty() ? options.user : "", options.group, options.cgroup, "", options.members};
    if (!options.cgroup.empty()) {
        if (auto valid = check_cgroup_pattern(options.cgroup); !valid) return valid;
        if (options.cgroup.find('{') != std::string::npos) return Error{"a transient tenant captures nothing: leave {} out"};
        if (!options.user.empty()) match.members.push_back(options.user);
    } else if (!match.members.empty()) {
        return Error{"--member needs --cgroup: a user or a group is its own member"};
    }
    if (match != Match{}) tenant.matches.push_back(std::move(match));
    return {};
}

Result<TenantPolicy> tenant_of(const Options& options) {
    TenantPolicy tenant;
    tenant.name = options.words[1];
    if (auto valid = check_tenant_name(tenant.name); !valid) return Error{valid.error()};
    if (auto added = add_match(options, tenant); !added) return Error{added.error()};
    if (auto added = add_limits(tenant.limits[index(Scope::tenant)], options.limits); !added) return Error{added.error()};
    if (auto added = add_limits(tenant.limits[index(Scope::process)], options.process_limits); !added)
        return Error{added.error()};
    if (options.mode.empty()) return tenant;
    const auto mode = parse_mode(options.mode);
    if (!mode) return Error{mode.error()};
    tenant.mode = *mode;
    return tenant;
}

int add(const Options& options, const Session& session) {
    const auto tenant = tenant_of(options);
    if (!tenant) return wrong_usage(tenant.error());
    if (const auto added = add_transient(session.directory, *tenant); !added) return failed(added.error());
    if (const auto divided = divide_shares(session.directory); !divided) return failed(divided.error());
    fmt::print("tenant {} is there; its directory is {}\n", tenant->name, here_path(session.directory, tenant->name));
    return status_done;
}

int remove(const std::string& name, const Session& session) {
    const auto gone = remove_transient(session.directory, name);
    if (!gone) return failed(gone.error());
    if (const auto divided = divide_shares(session.directory); !divided) return failed(divided.error());
    fmt::print("tenant {} is removed{}\n", name,
               *gone ? "" : "; processes still use it, and it goes with the last of them");
    return status_done;
}

// For rdmaquotad, whose own mounts the node does not see: the tenant of a template.
int make(const std::string& key, const Session& session) {
    const auto made = make_instance_of_key(session.directory, key);
    return made ? status_done : failed(made.error());
}

// As an OCI runtime's hook, which gets the container's state on standard input.
int bind(const std::string& name, const Session& session) {
    if (::geteuid() != 0) return failed("only root binds containers to tenants");
    const auto cgroup = container_cgroup(file_text("/dev/stdin"));
    if (!cgroup) return failed(cgroup.error());
    const auto bound = bind_cgroup(session.directory, name, *cgroup);
    if (!bound) return failed(bound.error());
    tell_guard(session.directory);
    return status_done;
}

std::string kind_of(const Policy& policy, const TenantPlace& place) {
    const auto* tenant = policy.find(place.key);
    if (place.key == node_tenant) return "the node";
    if (tenant && is_template(tenant->name)) return "template";
    if (tenant && tenant->transient) return "transient";
    if (tenant && tenant->is_override) return "override";
    if (tenant) return place.has_ledger() ? "" : "inner";
    if (const auto* from = template_of(policy, place.key)) return "of " + from->name;
    return "ended, in use";
}

int list(const Session& session) {
    const auto policy = running_policy(session.directory);
    if (!policy) return failed(policy.error());
    Table table({"TENANT", "MODE", "PROCESSES", "KIND"}, {Align::left, Align::left, Align::right, Align::left});
    for (const auto& place : tenant_places(session.directory)) {
        const auto limits = LimitsSegment::open(limits_path(place.here));
        if (!limits) continue;
        auto ledger = Ledger::open(ledger_path(place.here));
        const auto processes = ledger ? std::to_string((ledger->reap(), ledger->owners().size())) : "-";
        table.add({printable(limits->tenant()), std::string(name(limits->mode())), processes, kind_of(*policy, place)});
    }
    table.print(standard_output());
    return status_done;
}

int tenant(const Options& options, const Session& session) {
    const auto& words = options.words;
    if (words[0] == "list" && words.size() == 1) return list(session);
    const bool named = words.size() == 2;
    if (words[0] == "add" && named) return add(options, session);
    if (words[0] == "remove" && named) return remove(words[1], session);
    if (words[0] == "make" && named) return make(words[1], session);
    if (words[0] == "bind" && named) return bind(words[1], session);
    return wrong_usage("write 'tenant add NAME', 'tenant remove NAME', 'tenant bind NAME' or 'tenant list'");
}

}  // namespace

void add_tenant(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("tenant", "Add a tenant to the running policy, remove it, bind a container to one, or list all");
    command.words("add|remove|bind|list [NAME]", options->words, "What to do; a name such as slurm/atlas/job-4711");
    command.option("--cgroup", "PATH", options->cgroup, "add: processes in this cgroup or below are in the tenant");
    command.option("--user", "USER", options->user, "add: the processes of this user, or, with --cgroup, who may charge");
    command.option("--group", "GROUP", options->group, "add: the processes of this group");
    command.list("--member", "WHO", options->members, "add, with --cgroup: further ones who may charge: a user, @GROUP or *");
    command.list("--limit", "RESOURCE=N", options->limits, "add: limit for the tenant on each device; or DEVICE:RESOURCE=N");
    command.list("--process-limit", "RESOURCE=N", options->process_limits, "add: limit for each of its processes");
    command.option("--mode", "MODE", options->mode, "add: enforce, audit or off instead of the node's");
    command.action([options, &session] { return tenant(*options, session); });
}

}  // namespace rdmaquota
