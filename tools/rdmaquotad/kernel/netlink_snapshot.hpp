// The objects of processes that RDMA netlink lists (RDMA_NLDEV, as `rdma resource show`). It sees what existed before any
// program of ours was attached, but only some kinds, and costs a message per device and kind with an entry per object.
// So it is used at the beginning and for corrections.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/resource.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

using ResourceCounts = std::array<std::uint64_t, resource_count>;  // by index(Resource)

struct NetlinkUse {
    // The process that made the objects, in the caller's pid namespace. Processes outside it are left out, and so are
    // objects made by a thread that has ended.
    std::uint32_t pid;
    std::string device;
    ResourceCounts live;  // of resources that are `in_netlink`
};

// mr_bytes includes on-demand MRs there.
constexpr bool in_netlink(Resource resource) noexcept {
    using enum Resource;
    return resource == hca_handle || resource == pd || resource == cq || resource == qp || resource == mr ||
           resource == mr_bytes || resource == srq;
}

// One entry per process and device, in any order. Needs no privileges. Any thread.
Result<std::vector<NetlinkUse>> netlink_snapshot();

}  // namespace rdmaquota
