// How many objects were made and destroyed in each tenant on each device since the sidecar began to look, by the kernel's
// count: what a rate is calculated from.
//
// One thread.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

namespace rdmaquota {

class Churn {
public:
    struct Counts {
        ResourceCounts created{}, destroyed{};  // of objects; 0 for bytes
    };
    using Place = std::pair<std::string, std::string>;                      // tenant's key, device
    using TenantOf = std::function<std::string(const KernelUse& maker)>;  // empty: not known

    // What all processes have made, and what those had made in the end that are forgotten since the last call. The first call
    // is where counting begins.
    void add(const std::vector<KernelUse>& uses, const std::vector<KernelUse>& ended, const TenantOf& tenant_of);
    // Forgets tenants that are gone.
    void keep(const std::function<bool(const std::string& tenant)>& is_there);

    // The tenant of makers that ended before it was known is empty.
    const std::map<Place, Counts>& all() const noexcept { return all_; }

private:
    using Maker = std::tuple<std::uint32_t, std::string, std::uint32_t>;  // pid, device, opener
    struct Known {
        std::string tenant;
        Counts counts;
        unsigned unseen = 0;  // in so many calls
    };
    static Maker maker_of(const KernelUse& use) { return {use.pid, use.device, use.opener}; }
    void add(const KernelUse& use, const TenantOf& tenant_of);

    std::map<Maker, Known> makers_;
    std::map<Place, Counts> all_;
    bool began_ = false;
};

}  // namespace rdmaquota
