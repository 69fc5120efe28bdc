#include "provider/device_limits.hpp"

#include <algorithm>

#include "provider/account.hpp"

namespace rdmaquota::provider {
namespace {

// The limit rows that matter for one device; null where the policy has none.
struct Rows {
    const PolicyRow* own;
    const PolicyRow* any;
    const PolicyRow* total;

    Rows(const PolicySegment& policy, Scope scope, std::string_view device) noexcept
        : own(policy.row(scope, device)), any(policy.row(scope, any_device)), total(policy.row(scope, total_device)) {}
};

std::uint64_t or_unlimited(std::uint64_t limit) noexcept { return limit == unset ? unlimited : limit; }

// A row of its own goes before "*".
std::uint64_t of_device(const Rows& rows, Resource resource) noexcept {
    const auto limit = load_limit(rows.own, resource);
    return or_unlimited(limit != unset ? limit : load_limit(rows.any, resource));
}

std::uint64_t of_total(const Rows& rows, Resource resource, const LimitRow& tightening) noexcept {
    return std::min(or_unlimited(load_limit(rows.total, resource)), or_unlimited(tightening[index(resource)]));
}

Limits limits_of(const Rows& process, const Rows& tenant, Resource resource) noexcept {
    return {of_device(process, resource), of_total(process, resource, environment().process),
            of_device(tenant, resource), of_total(tenant, resource, environment().tenant)};
}

}  // namespace

void DeviceLimits::Cell::write(const Limits& limits) noexcept {
    process.store(limits.process, std::memory_order_relaxed);
    process_total.store(limits.process_total, std::memory_order_relaxed);
    tenant.store(limits.tenant, std::memory_order_relaxed);
    tenant_total.store(limits.tenant_total, std::memory_order_relaxed);
}

// The generation is read before the rows, so that a change in between is seen the next time.
bool DeviceLimits::refresh(const PolicySegment& policy, std::string_view device) noexcept {
    if (refreshing_.exchange(true)) return false;
    const auto generation = policy.generation();
    const Rows process(policy, Scope::process, device);
    const Rows tenant(policy, Scope::tenant, device);
    policy_ = nullptr;
    for (const auto& row : resource_table) cells_[index(row.id)].write(limits_of(process, tenant, row.id));
    generation_ = generation;
    policy_ = &policy;
    refreshing_ = false;
    return true;
}

void DeviceLimits::resolve(const PolicySegment& policy, std::string_view device, const Amounts& amounts,
                           Limits* limits) noexcept {
    const Rows process(policy, Scope::process, device);
    const Rows tenant(policy, Scope::tenant, device);
    for (std::size_t i = 0; i < amounts.count; ++i) limits[i] = limits_of(process, tenant, amounts.resource[i]);
}

}  // namespace rdmaquota::provider
