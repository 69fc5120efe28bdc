// The last denials of each tenant's ledger, for the page: a tenant that is denied again and again pushes out its own
// only. One thread.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>

#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/node/tenant.hpp"

namespace rdmaquota {

class RecentEvents {
public:
    static constexpr std::size_t most = 16;  // of a tenant

    explicit RecentEvents(std::string directory) : directory_(std::move(directory)) {}

    struct Recent {
        std::uint64_t number;
        Event event;
        Json json;
    };
    struct OfTenant {
        std::string name, here;
        std::deque<Recent> events;  // oldest first
    };

    // `json` is that of event_json. One whose count grew takes the place of what was known of it. Opens no file.
    void add(const Tenant& tenant, std::uint64_t number, const Event& event, const Json& json);
    const std::map<std::string, OfTenant>& all() const noexcept { return tenants_; }  // by key
    // Forgets tenants that are gone.
    void keep(const std::function<bool(const std::string& key)>& is_there);

    // JSON, with the user's name and what helps as "helps", empty where that is not known.
    std::string text(const OfTenant& of, const Recent& recent, const std::string& user) const;

private:
    std::string directory_;
    std::map<std::string, OfTenant> tenants_;
};

}  // namespace rdmaquota
