// What the kernel says that exists.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace oracle {

// Moves this process to a cgroup of its own, so that its rdma.current is that of the test alone.
void enter_cgroup();

// hca_handle and hca_object of that cgroup on `device`, as of rdma.current.
std::map<std::string, std::int64_t> cgroup_counts(const std::string& device);

// Objects of the whole device, as `rdma resource show` lists them: pd, cq, qp, mr, srq, ctx, cm_id.
// Empty when there is no such device. Asked by netlink, since a program at every step takes too long.
std::map<std::string, std::int64_t> resource_counts(const std::string& device);

}  // namespace oracle
