// What an open device reports that it can have at most: what limits in percent are of while the policy's file does not know the
// device. The device is asked when a limit first needs it.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>

#include <infiniband/verbs.h>

#include "provider/abi/libibverbs.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota::provider {

// Where a device reports how many it can have. QPs come last: see DeviceReport::ask.
inline constexpr std::pair<Resource, int ibv_device_attr::*> device_maxima[] = {
    {Resource::cq, &ibv_device_attr::max_cq}, {Resource::mr, &ibv_device_attr::max_mr},   {Resource::pd, &ibv_device_attr::max_pd},
    {Resource::mw, &ibv_device_attr::max_mw}, {Resource::ah, &ibv_device_attr::max_ah},   {Resource::srq, &ibv_device_attr::max_srq},
    {Resource::qp, &ibv_device_attr::max_qp},
};

class DeviceReport {
public:
    // Before anything is charged; `query` is the real provider's query_device_ex, or null. The context is open as long as this is used.
    void set_device(ibv_context* verbs, OpPointer query) noexcept {
        verbs_ = verbs;
        query_ = query;
    }

    // Asks the real provider; 0, or an errno.
    int query(ibv_device_attr_ex& attr) const noexcept;

    // The amount that a limit of `policy` is on `device`, which is this one or a port of it; `unlimited` for a percentage of what the
    // device does not report. Thread-safe; keeps errno.
    std::uint64_t amount(const LimitsSegment& policy, std::uint64_t limit, DeviceKey device, Resource resource) noexcept {
        return is_percentage(limit) ? amount_of(limit, capacity(policy, device, resource)) : limit;
    }

private:
    std::uint64_t capacity(const LimitsSegment& policy, DeviceKey device, Resource resource) noexcept;
    void ask() noexcept;

    ibv_context* verbs_ = nullptr;
    OpPointer query_ = nullptr;
    std::array<std::atomic<std::uint64_t>, resource_count> most_{};  // 0: not known
};

}  // namespace rdmaquota::provider
