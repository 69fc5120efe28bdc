// Usage by pod and by job, found by the cgroups of the processes; `metrics_labels` in the policy asks for it. The kernel reports a
// process's cgroup. Only the outermost cgroups count, which root's services create; a container may name those below.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "policy/sidecar.hpp"
#include "tools/common/tenants/pod_names.hpp"
#include "tools/common/views/snapshot.hpp"

namespace rdmaquota {

// Of "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b2c_3d.slice/cri-containerd-9f.scope": "1b2c-3d"; also
// "/kubepods/burstable/pod1b2c-3d/9f".
std::optional<std::string> pod_uid(std::string_view cgroup);
// Of "/system.slice/slurmstepd.scope/job_123/step_0": "123".
std::optional<std::string> job_id(std::string_view cgroup);

struct WorkloadCell {
    std::string tenant, name_space, pod, job, device, resource;
    auto operator<=>(const WorkloadCell&) const = default;
};

// The usage of one scrape.
class Workloads {
public:
    static constexpr std::size_t most = 2000;  // series

    Workloads(const MetricsAccess& asked, PodNames& pods) : asked_(asked), pods_(pods) {}

    // Processes that are in no pod and no job are left out.
    void add(const std::string& tenant, const TenantView& view);

    const std::map<WorkloadCell, std::uint64_t>& usage() const noexcept { return usage_; }
    std::size_t left_out() const noexcept { return left_out_; }  // usages that would have been one more series than `most`

private:
    bool find(WorkloadCell& cell, std::string_view cgroup) const;

    const MetricsAccess& asked_;
    PodNames& pods_;
    std::map<WorkloadCell, std::uint64_t> usage_;
    std::size_t left_out_ = 0;
};

}  // namespace rdmaquota
