#include "tools/common/limits/node_checks.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include <fmt/format.h>

#include "policy/printable.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/limits/device_selectors.hpp"
#include "tools/common/tenants/names.hpp"

namespace rdmaquota {
namespace {

constexpr std::string_view cgroup_mount = "/sys/fs/cgroup/";

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

void add_devices(const ScopeLimits& rows, std::set<std::string>& devices) {
    for (const auto& row : rows) devices.insert(row.device);
}

std::set<std::string> devices_of(const Policy& policy) {
    std::set<std::string> devices;
    for (const auto* rows : {&policy.process, &policy.node}) add_devices(*rows, devices);
    for (const auto& tenant : policy.tenants) {
        for (const auto& rows : tenant.limits) add_devices(rows, devices);
        for (const auto* rows : {&tenant.guarantees, &tenant.softs}) add_devices(*rows, devices);
    }
    for (const auto& rule : policy.dynamic) devices.insert(rule.device);
    if (!policy.slurm) return devices;
    add_devices(policy.slurm->job, devices);
    for (const auto* scopes : {&policy.slurm->partitions, &policy.slurm->accounts, &policy.slurm->qos})
        for (const auto& [name, rows] : *scopes) add_devices(rows, devices);
    return devices;
}

// By the permissions for others: programs of any user log.
bool others_may_append(const std::string& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) == 0) return S_ISREG(status.st_mode) && (status.st_mode & S_IWOTH) != 0;
    const auto directory = std::filesystem::path(file).parent_path().string();
    return ::stat(directory.c_str(), &status) == 0 && (status.st_mode & S_IWOTH) != 0;
}

// Names of an entry that NSS does not know, groups with '@' in front.
std::set<std::string> unknown_names(const TenantPolicy& tenant) {
    std::set<std::string> names;
    const auto look = [&](const std::string& name) {
        if (!name.empty() && name != "*" && !is_known_name(name)) names.insert(name);
    };
    for (const auto& match : tenant.matches) {
        look(match.user);
        if (!match.group.empty()) look("@" + match.group);
        for (const auto& member : match.members) look(member);
    }
    return names;
}

void add_match_warnings(const TenantPolicy& tenant, std::vector<std::string>& warnings) {
    for (const auto& name : unknown_names(tenant))
        warnings.push_back(fmt::format("tenant {}: there is no {} {} yet; its match holds once there is (rdmaquotad "
                                       "tries again, or run 'rdmaquota reload')",
                                       tenant.name, name.starts_with('@') ? "group" : "user", printable(name)));
    for (const auto& match : tenant.matches)
        if (match.cgroup.starts_with(cgroup_mount))
            warnings.push_back(fmt::format("tenant {}: no cgroup's path begins with {}, where the hierarchy is mounted; write "
                                           "{} without it",
                                           tenant.name, cgroup_mount, printable(match.cgroup)));
}

// A node without any device, where a policy is only written or its driver is still to come, says nothing of them.
void add_device_warnings(const Policy& policy, std::vector<std::string>& warnings) {
    const auto here = machine_devices();
    if (here.empty()) return;
    std::set<std::string> missing;
    for (const auto& name : devices_of(policy)) {
        auto device = std::string(without_port(name));
        if (is_selector(device))
            if (auto selected = select_device(device)) device = selected->name;
        if (device != any_device && device != total_device && !std::binary_search(here.begin(), here.end(), device))
            missing.insert(device);
    }
    for (const auto& device : missing)
        warnings.push_back(fmt::format("device {} is not on this node, which has {}; its limits hold once it is", printable(device),
                                       printable(fmt::format("{}", fmt::join(here, ", ")))));
}

bool has_limits(const ScopeLimits& limits) {
    return std::any_of(limits.begin(), limits.end(), [](const DeviceLimits& row) {
        return std::any_of(row.limits.begin(), row.limits.end(), [](std::uint64_t limit) { return limit < unset; });
    });
}

// Only the sidecar can put a user or cgroup that the kernel's program has not seen yet into its tenant.
void add_guard_warning(const Policy& policy, std::vector<std::string>& warnings) {
    if (policy.sidecar.guard != GuardMode::deny || policy.tenants.size() == 1) return;
    if (!has_limits(policy.find(default_tenant)->limits[index(Scope::tenant)]))
        warnings.push_back("guard = \"deny\" and tenant default has no limits: while rdmaquotad does not run, the guard counts programs that "
                           "go around the library there; write [tenant.default.\"*\"]");
}

}  // namespace

std::vector<std::string> warnings_of_node(const Policy& policy) {
    std::vector<std::string> warnings;
    for (const auto& tenant : policy.tenants) add_match_warnings(tenant, warnings);
    if (policy.sidecar.backstop.starts_with(cgroup_mount))
        warnings.push_back(fmt::format("backstop: write the cgroup without {}, where the hierarchy is mounted", cgroup_mount));
    add_device_warnings(policy, warnings);
    add_guard_warning(policy, warnings);
    for (const auto& device : devices_of(policy))
        if (auto missing = missing_port(device); !missing.empty())
            warnings.push_back(missing + "; its limit holds for nothing");
    if (policy.log_target == LogTarget::file && !others_may_append(policy.log_file))
        warnings.push_back(
            fmt::format("ordinary users cannot append to the log file {}: their programs log to "
                        "standard error",
                        printable(policy.log_file)));
    return warnings;
}

std::string missing_backstop(const Policy& policy) {
    const auto& group = policy.sidecar.backstop;
    return group.empty() || exists("/sys/fs/cgroup" + group) ? std::string() : group;
}

std::string missing_port(const std::string& device) {
    if (!is_port(device)) return {};
    const auto name = std::string(without_port(device)), port = std::string(port_part(device));
    const auto path = "/sys/class/infiniband/" + name;
    if (!exists(path) || exists(path + "/ports" + port)) return {};
    return fmt::format("device {} has no port {}", printable(name), printable(port.substr(1)));
}

}  // namespace rdmaquota
