#include "tools/rdmaquotad/metrics/workloads.hpp"

#include <algorithm>
#include <cctype>

#include "policy/pattern.hpp"

namespace rdmaquota {
namespace {

std::optional<std::string> uid_in(std::string_view part) {
    const bool slice = part.ends_with(".slice");
    if (slice) part.remove_suffix(6);
    const auto at = slice ? part.rfind("-pod") : part.starts_with("pod") ? 0 : part.npos;
    if (at == part.npos) return std::nullopt;
    std::string uid(part.substr(at + (slice ? 4 : 3)));
    if (slice) std::replace(uid.begin(), uid.end(), '_', '-');
    return uid.empty() ? std::nullopt : std::optional(uid);
}

}  // namespace

std::optional<std::string> pod_uid(std::string_view cgroup) {
    if (!cgroup.starts_with("/kubepods") && !cgroup.starts_with("/kubelet")) return std::nullopt;
    while (!cgroup.empty())
        if (auto uid = uid_in(take_element(cgroup))) return uid;
    return std::nullopt;
}

std::optional<std::string> job_id(std::string_view cgroup) {
    if (take_element(cgroup) != "system.slice" || !take_element(cgroup).ends_with("slurmstepd.scope")) return std::nullopt;
    auto job = take_element(cgroup);
    if (!job.starts_with("job_")) return std::nullopt;
    job.remove_prefix(4);
    const bool number = !job.empty() && std::all_of(job.begin(), job.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
    return number ? std::optional(std::string(job)) : std::nullopt;
}

bool Workloads::find(WorkloadCell& cell, std::string_view cgroup) const {
    if (asked_.pods)
        if (const auto uid = pod_uid(cgroup)) {
            auto name = pods_.of(*uid);
            cell.name_space = std::move(name.name_space);
            cell.pod = std::move(name.pod);
            return true;
        }
    if (!asked_.jobs) return false;
    cell.job = job_id(cgroup).value_or("");
    return !cell.job.empty();
}

void Workloads::add(const std::string& tenant, const TenantView& view) {
    WorkloadCell cell{tenant, {}, {}, {}, {}, {}};
    for (const auto& process : view.processes) {
        if (!find(cell, process.cgroup)) continue;
        for (const auto& device : process.devices)
            for (const auto& resource : device.resources) {
                cell.device = device.name;
                cell.resource = info(resource.resource).name;
                const bool fits = usage_.size() < most || usage_.contains(cell);
                if (fits) usage_[cell] += resource.usage;
                else ++left_out_;
            }
        cell.name_space.clear(), cell.pod.clear(), cell.job.clear();
    }
}

}  // namespace rdmaquota
