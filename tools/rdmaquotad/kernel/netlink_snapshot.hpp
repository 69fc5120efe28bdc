// What RDMA netlink (RDMA_NLDEV, as `rdma resource show`) lists of the objects that processes have. It sees
// what existed before any program of ours was attached, but only some kinds, and costs a message per device
// and kind with an entry per object; so it is for the beginning and for corrections.
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
    // Who made the objects, in the caller's pid namespace; processes outside it are left out, and so are objects whose
    // maker was a thread that has ended.
    std::uint32_t pid;
    std::string device;
    ResourceCounts live;  // of resources that are `in_netlink`
};

// mr_bytes is the length of all MRs there, on-demand ones included.
constexpr bool in_netlink(Resource resource) noexcept {
    using enum Resource;
    return resource == hca_handle || resource == pd || resource == cq || resource == qp || resource == mr ||
           resource == mr_bytes || resource == srq;
}

// One entry per process and device, in no order. Needs no privileges. Any thread.
Result<std::vector<NetlinkUse>> netlink_snapshot();

}  // namespace rdmaquota
