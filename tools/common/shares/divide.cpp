#include "tools/common/shares/divide.hpp"

#include <unistd.h>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/policy_lock.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/guard/kept_guard.hpp"
#include "tools/common/limits/percentages.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/limited_tenants.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {
namespace {

// What ended programs left is not in use.
void reap(const std::vector<ShareMember>& members) {
    for (const auto& member : members)
        if (member.has_ledger)
            if (auto ledger = Ledger::open(ledger_path(std::string(member.here)))) ledger->reap();
}

}  // namespace

Result<void> divide_by_weight(const std::string& directory, ShareMover& mover, std::chrono::milliseconds patience) {
    const auto lock = PolicyLock::take(shares_path(directory), patience);
    if (!lock) return Error{lock.error()};
    const LimitedTenants tenants(directory);
    reap(tenants.list());
    return mover.pass(tenants.list(), policy_devices(), ShareMover::Wants::limit, ShareMover::Clock::now());
}

Result<Divided> divide_grants(const std::string& directory, std::chrono::milliseconds patience) {
    if (ask_sidecar(directory, Json{{"request", "grant"}})) return Divided::by_sidecar;
    if (auto resolved = resolve_percentages(directory); !resolved) return Error{resolved.error()};
    ShareMover mover;
    if (const auto divided = divide_by_weight(directory, mover, patience); !divided) return Error{divided.error()};
    return Divided::here;
}

Result<void> divide_shares(const std::string& directory, std::chrono::milliseconds patience) {
    if (is_own_directory(directory)) return {};
    const auto divided = divide_grants(directory, patience);
    if (!divided) return Error{divided.error()};
    return *divided == Divided::here ? lead_kept_guard(directory) : Result<void>();
}

ScopeLimits first_grants(const std::string& directory, std::string_view key, const TenantLimits& limits) {
    ScopeLimits grants;
    if (key == node_tenant) return grants;
    const auto& own = limits.limits[index(Scope::tenant)];
    for (auto above = parent_of(key);; above = parent_of(above)) {
        const auto bounds = LimitsSegment::open(limits_path(here_path(directory, above)), LimitsSegment::Parts::all);
        auto devices = bounds ? bounds->devices(Scope::tenant) : std::vector<std::string>();
        for (const auto& row : own) devices.push_back(row.device);  // which "*" above bounds, too
        for (const auto& device : devices)
            for (const auto& row : limit_table)
                if (bounds && bounds->limit(Scope::tenant, device, row.id) != unlimited)
                    row_for(grants, device)[index(row.id)] = 0;
        if (above == node_tenant) return grants;
    }
}

}  // namespace rdmaquota
