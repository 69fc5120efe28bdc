// The last denials of each tenant's ledger, for the page: a tenant that is denied again and again pushes out its own only.
// One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>

#include "tools/common/json.hpp"
#include "tools/rdmaquotad/core/tenant.hpp"

namespace rdmaquota {

class RecentEvents {
public:
    static constexpr std::size_t most = 16;  // of a tenant

    explicit RecentEvents(std::string directory) : directory_(std::move(directory)) {}

    // `event` is that of event_json. One whose count grew takes the place of what was known of it.
    void add(const Tenant& tenant, std::uint64_t number, const Event& event, const Json& json);
    // The tenant is gone.
    void forget(const std::string& key) { tenants_.erase(key); }

    struct Recent {
        std::uint64_t time_ns;
        std::uint64_t number;
        std::string text;  // JSON, with what helps as "helps" where that is known
    };
    using OfTenant = std::deque<Recent>;  // oldest first
    const std::map<std::string, OfTenant>& all() const noexcept { return tenants_; }  // by key

private:
    std::string directory_;
    std::map<std::string, OfTenant> tenants_;
};

}  // namespace rdmaquota
