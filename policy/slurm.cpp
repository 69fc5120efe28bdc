#include "policy/slurm.hpp"

#include <algorithm>
#include <charconv>
#include <set>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

constexpr std::size_t longest_account = 64;  // of the 127 bytes that a tenant's name may have

// As an element of a tenant's name; see check_tenant_name.
std::string element_of(std::string_view account) {
    if (account.empty()) return "none";
    std::string element(account.substr(0, longest_account));
    if (element[0] == '.' || element[0] == '-') element[0] = '_';
    for (auto& letter : element)
        if (letter == '/' || !check_tenant_name(std::string("a") + letter)) letter = '_';
    return element;
}

void lay_over(ScopeLimits& limits, const ScopeLimits& above) {
    for (const auto& entry : above) {
        auto& row = row_for(limits, entry.device);
        for (std::size_t i = 0; i < row.size(); ++i)
            if (entry.limits[i] != unset) row[i] = entry.limits[i];
    }
}

void lay_over(ScopeLimits& limits, const std::map<std::string, ScopeLimits, std::less<>>& by_name,
              const std::string& name) {
    if (const auto found = by_name.find(name); found != by_name.end()) lay_over(limits, found->second);
}

// "qp", or "qp of mlx5_0"
std::string cell_name(std::string_view device, Resource resource) {
    if (device == any_device) return std::string(info(resource).name);
    return fmt::format("{} of {}", info(resource).name, device);
}

// `*` is asked for on each device, so those that the policy names are lowered, too.
void lower_named_devices(Resource resource, std::uint64_t asked, ScopeLimits& limits) {
    for (auto& [device, row] : limits) {
        auto& limit = row[index(resource)];
        if (!stands_alone(device) && limit != unset && are_comparable(limit, asked))
            limit = std::min(limit, asked);
    }
}

}  // namespace

std::string tenant_of(const SlurmJob& job) { return fmt::format("slurm/{}/job-{}", element_of(job.account), job.id); }

bool is_tenant_of(std::string_view tenant, std::uint32_t job) {
    const auto last = tenant.rfind('/');
    return tenant.starts_with("slurm/") && last != tenant.npos && tenant.substr(last + 1) == fmt::format("job-{}", job);
}

// The first two elements are made by root only.
std::string cgroup_of(const SlurmJob& job) { return fmt::format("/*.slice/*slurmstepd.scope/job_{}", job.id); }

ScopeLimits limits_of(const SlurmPolicy& policy, const SlurmJob& job) {
    auto limits = policy.job;
    lay_over(limits, policy.partitions, job.partition);
    lay_over(limits, policy.accounts, job.account);
    lay_over(limits, policy.qos, job.qos);
    return limits;
}

Result<std::vector<DeviceSetting>> parse_job_request(std::string_view text) {
    std::vector<DeviceSetting> request;
    std::set<std::string> devices;
    for (std::size_t begin = 0; begin <= text.size();) {
        const auto end = std::min(text.find(',', begin), text.size());
        const auto parsed = parse_device_settings(text.substr(begin, end - begin));
        if (!parsed) return Error{parsed.error()};
        const auto device = parsed->device.empty() ? std::string(any_device) : parsed->device;
        devices.insert(device);
        if (devices.size() > most_requested_devices)
            return Error{fmt::format("more than {} devices", most_requested_devices)};
        for (const auto& setting : parsed->settings) request.push_back({device, setting});
        begin = end + 1;
    }
    return request;
}

std::vector<std::string> apply_job_request(const std::vector<DeviceSetting>& request, ScopeLimits& limits) {
    std::vector<std::string> remarks;
    const auto policys = limits;
    for (const auto& [device, setting] : request) {
        const auto allowed = value_for(policys, device, setting.resource);
        const bool too_much = allowed != unset && (setting.limit > allowed || !are_comparable(setting.limit, allowed));
        if (too_much)
            remarks.push_back(fmt::format(
                "{} cannot be {}: the policy of this node gives a job {}", cell_name(device, setting.resource),
                format_limit(setting.resource, setting.limit), format_limit(setting.resource, allowed)));
        if (device == any_device) lower_named_devices(setting.resource, setting.limit, limits);
        row_for(limits, device)[index(setting.resource)] = too_much ? allowed : setting.limit;
    }
    return remarks;
}

}  // namespace rdmaquota
