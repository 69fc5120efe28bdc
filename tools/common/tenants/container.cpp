#include "tools/common/tenants/container.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "policy/pattern.hpp"
#include "policy/printable.hpp"
#include "policy/subject_text.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {
namespace {

// Where the node's cgroups are mounted: the unified hierarchy, or with version 1 those that subject_text.hpp takes a path
// from.
constexpr std::array hierarchies{"", "/unified", "/rdma", "/pids", "/systemd"};

bool is_gone(const std::string& cgroup) {
    return std::none_of(hierarchies.begin(), hierarchies.end(), [&](const char* hierarchy) {
        return ::access(fmt::format("/sys/fs/cgroup{}{}/cgroup.procs", hierarchy, cgroup).c_str(), F_OK) == 0;
    });
}

bool is_ended(const Match& match) { return match.bound && is_gone(match.cgroup); }

std::optional<pid_t> pid_in(std::string_view state) {
    const auto json = Json::parse(state.begin(), state.end(), nullptr, false);
    if (!json.is_object() || !json.contains("pid") || !json["pid"].is_number_integer()) return std::nullopt;
    const auto pid = json["pid"].get<std::int64_t>();
    if (pid < 1 || pid > std::int64_t{1} << 22) return std::nullopt;  // the kernel's PID_MAX_LIMIT
    return static_cast<pid_t>(pid);
}

std::string cgroup_of(const std::string& proc, const std::string& process) {
    return std::string(cgroup_path(file_text(fmt::format("{}/{}/cgroup", proc, process))));
}

}  // namespace

Result<void> check_for_container(const Policy& policy, std::string_view name) {
    if (name == node_tenant) return Error{"'node' is all tenants together; name one of them"};
    if (is_template(name)) return Error{fmt::format("'{}' is a template; a container needs a tenant", printable(name))};
    if (is_inner(policy, name))
        return Error{fmt::format("'{}' has tenants below it, so no container can be in it", printable(name))};
    if (policy.find(name) == nullptr)
        return Error{fmt::format("the running policy has no tenant '{}'; 'rdmaquota tenant list' names all",
                                 printable(name))};
    return {};
}

Result<std::string> container_cgroup(std::string_view state, const std::string& proc) {
    const auto pid = pid_in(state);
    if (!pid) return Error{"standard input is no OCI state with the pid of a container"};
    const auto cgroup = cgroup_of(proc, std::to_string(*pid));
    if (cgroup.empty()) return Error{fmt::format("the cgroup of process {} cannot be read", *pid)};
    if (cgroup == "/" || cgroup == cgroup_of(proc, "self"))
        return Error{fmt::format("the container has no cgroup of its own; its process {} is in {}", *pid, printable(cgroup))};
    return cgroup;
}

Result<void> check_container_cgroup(std::string_view cgroup) {
    if (cgroup.find_first_of("*{}") != cgroup.npos)
        return Error{fmt::format("the cgroup {} has characters that patterns use", printable(cgroup))};
    return check_cgroup_pattern(cgroup);
}

bool has_ended_bindings(const Policy& policy) {
    return std::any_of(policy.tenants.begin(), policy.tenants.end(), [](const TenantPolicy& tenant) {
        return std::any_of(tenant.matches.begin(), tenant.matches.end(), is_ended);
    });
}

bool erase_ended_bindings(Policy& policy) {
    std::size_t count = 0;
    for (auto& tenant : policy.tenants) count += std::erase_if(tenant.matches, is_ended);
    return count != 0;
}

}  // namespace rdmaquota
