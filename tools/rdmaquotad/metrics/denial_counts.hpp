// How often creations were denied, by tenant, device, resource and reason, since the sidecar started.
//
// The ledgers' word, which the members of a tenant can falsify for their own. Memory is bounded: a tenant has at most
// `most` entries, beyond which its denials count with "other" for device, resource and reason.
//
// One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "shm/ledger/ledger.hpp"

namespace rdmaquota {

class DenialCounts {
public:
    static constexpr std::size_t most = 512;  // of a tenant

    struct What {
        EventKind kind = EventKind::none;  // denied, would_deny, unproved or refused_by_device
        std::string device;                // not yet safe to print
        std::string resource;
        std::string reason;  // of a denial, its Reason's name; of refused_by_device, that of the errno
        auto operator<=>(const What&) const = default;
    };
    using OfTenant = std::map<What, std::uint64_t>;

    // `more`: how often the event happened since it was added last. Others than denials are left out.
    void add(const std::string& tenant, const std::string& device, const Event& event, std::uint64_t more);
    // Forgets tenants that are gone.
    void keep(const std::function<bool(const std::string& tenant)>& is_there);

    const std::map<std::string, OfTenant>& all() const noexcept { return tenants_; }  // by key

private:
    std::map<std::string, OfTenant> tenants_;
};

}  // namespace rdmaquota
