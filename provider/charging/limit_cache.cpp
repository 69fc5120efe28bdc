#include "provider/charging/limit_cache.hpp"

#include <algorithm>

#include "provider/host/environment.hpp"

namespace rdmaquota::provider {

// The rows of policy and environment that apply to one device or port; null where there is none. Neither "*" nor sums
// over devices include ports.
struct LimitRows {
    const LimitsSegment& policy;
    DeviceKey device;
    DeviceReport& report;
    const LimitsRow* own;
    const LimitsRow* any;
    const LimitsRow* total;
    const LimitRow* own_tightening;
    const LimitRow* total_tightening;

    LimitRows(const LimitsSegment& segment, Scope scope, DeviceKey key, DeviceReport& reported) noexcept
        : policy(segment),
          device(key),
          report(reported),
          own(policy.row(scope, device)),
          any(is_port(device.name) ? nullptr : policy.row(scope, any_device)),
          total(is_port(device.name) ? nullptr : policy.row(scope, total_device)),
          own_tightening(
              find_row(scope == Scope::process ? environment().process_devices : environment().tenant_devices, device.name)),
          total_tightening(is_port(device.name)           ? nullptr
                           : scope == Scope::process ? &environment().process
                                                     : &environment().tenant) {}
};

namespace {

std::uint64_t or_unlimited(std::uint64_t limit) noexcept { return limit == unset ? unlimited : limit; }

std::uint64_t tightened(std::uint64_t limit, const LimitRow* row, Resource resource) noexcept {
    return row ? std::min(limit, or_unlimited((*row)[index(resource)])) : limit;
}

// The device's own row takes precedence over "*".
std::uint64_t of_device(const LimitRows& rows, Resource resource) noexcept {
    auto limit = load_limit(rows.own, resource);
    if (limit == unset) limit = load_limit(rows.any, resource);
    return tightened(or_unlimited(rows.report.amount(rows.policy, limit, rows.device, resource)), rows.own_tightening, resource);
}

std::uint64_t of_total(const LimitRows& rows, Resource resource) noexcept {
    const auto limit = load_limit(rows.total, resource);
    return tightened(or_unlimited(rows.report.amount(rows.policy, limit, total_device, resource)), rows.total_tightening, resource);
}

Limits limits_of(const LimitRows& process, const LimitRows& tenant, Resource resource) noexcept {
    return {of_device(process, resource), of_total(process, resource), of_device(tenant, resource),
            of_total(tenant, resource)};
}

// The burst of a tenant's rate; a process's is what its rate allows in a second.
std::uint64_t burst_of(const LimitsRow* own, const LimitsRow* any, Resource rate) noexcept {
    const auto burst_in = [rate](const LimitsRow* row) { return row ? load(row->soft[index(rate)]) : unset; };
    const auto burst = burst_in(own);
    return or_unlimited(burst == unset ? burst_in(any) : burst);
}

}  // namespace

bool LimitCache::named(const LimitsSegment& policy, DeviceKey device) noexcept {
    for (const auto scope : {Scope::process, Scope::tenant}) {
        const auto& tightening = scope == Scope::process ? environment().process_devices : environment().tenant_devices;
        if (policy.row(scope, device) != nullptr || find_row(tightening, device.name) != nullptr) return true;
    }
    return false;
}

void LimitCache::read(const LimitsSegment& policy, DeviceKey device, DeviceReport& report, const Amounts& amounts,
                      Limits* limits) noexcept {
    if (!renew(policy, device, report)) {
        const LimitRows process(policy, Scope::process, device, report), tenant(policy, Scope::tenant, device, report);
        for (std::size_t i = 0; i < amounts.count; ++i) limits[i] = limits_of(process, tenant, amounts.resource[i]);
        return;
    }
    for (std::size_t i = 0; i < amounts.count; ++i) {
        const auto& of = cell(amounts.resource[i]);
        limits[i] = {of.process, of.process_total, hard_[index(amounts.resource[i])], of.tenant_total};
    }
}

bool LimitCache::renew(const LimitsSegment& policy, DeviceKey device, DeviceReport& report) noexcept {
    View now{};
    const bool known = view(now) && now.word == &policy.generation_word();
    return (known && now.holds()) || refresh(policy, device, report);
}

std::uint32_t LimitCache::read_rates(const LimitRows& process, const LimitRows& tenant) noexcept {
    std::uint32_t held = 0;
    for (const auto& row : rate_table) {
        const auto rate = row.id;
        const auto limits = limits_of(process, tenant, rate);
        const std::uint64_t limit[bounds] = {limits.process, limits.process_total, limits.tenant, limits.tenant_total};
        const std::uint64_t burst[bounds] = {unlimited, unlimited, burst_of(tenant.own, tenant.any, rate), burst_of(tenant.total, nullptr, rate)};
        for (std::size_t bound = 0; bound < bounds; ++bound) {
            const auto pace = pace_of(limit[bound], burst[bound]);
            auto& of = rates_[rate_index(rate)];
            of.limit[bound] = limit[bound];
            of.unit[bound] = pace.unit;
            of.burst_ns[bound] = pace.burst_ns;
            if (pace.unit != 0) held |= 1U << (rate_index(rate) * bounds + bound);
        }
    }
    return held;
}

// The generation is read before the rows, so that the next call sees a change in between.
bool LimitCache::refresh(const LimitsSegment& policy, DeviceKey device, DeviceReport& report) noexcept {
    const auto self = this_process();
    auto other = refreshing_.load();
    if (other == self || !refreshing_.compare_exchange_strong(other, self)) return false;
    const auto generation = policy.generation();
    const bool counts = policy.mode() != Mode::off && !policy.superseded();
    const LimitRows process(policy, Scope::process, device, report), tenant(policy, Scope::tenant, device, report);
    generation_ = not_known;
    for (const auto& row : resource_table) {
        const auto limits = limits_of(process, tenant, row.id);
        const auto soft = policy.as_written(LimitPart::soft, Scope::tenant, device, row.id);
        auto& of = cells_[index(row.id)];
        of.process = limits.process;
        of.process_total = limits.process_total;
        of.tenant = std::min(limits.tenant, or_unlimited(report.amount(policy, soft, device, row.id)));
        hard_[index(row.id)] = limits.tenant;
        of.tenant_total = limits.tenant_total;
    }
    longest_delay_ns_ = policy.mode() == Mode::audit ? 0 : policy.max_delay_ns();
    held_rates_ = counts ? read_rates(process, tenant) : 0;
    word_ = &policy.generation_word();
    if (counts) generation_ = generation;
    refreshing_ = ProcessId{};
    return true;
}

}  // namespace rdmaquota::provider
