#include "tools/common/views/snapshot.hpp"

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "shm/atomic.hpp"
#include "tools/common/boot_clock.hpp"
#include "tools/common/devices.hpp"

namespace rdmaquota {
namespace {

using Device = std::pair<std::uint32_t, std::string>;
using Reading = std::function<ResourceView(Resource)>;

constexpr std::size_t most_figures = 131'072;

// The resources of one device that have usage, a limit or a peak.
DeviceView read_device(const std::string& name, const Reading& read) {
    DeviceView view{name, {}};
    for (const auto& row : resource_table) {
        const auto resource = read(row.id);
        if (resource.usage != 0 || resource.limit != unlimited || resource.peak.value_or(0) != 0 || is_percentage(resource.written))
            view.resources.push_back(resource);
    }
    return view;
}

void keep(std::vector<DeviceView>& views, DeviceView view) {
    if (!view.resources.empty()) views.push_back(std::move(view));
}

// Devices without usage among those of the machine, `names`, or that the policy names.
std::vector<std::string> unused_devices(const std::vector<Device>& used, std::vector<std::string> names, const LimitsSegment& policy) {
    for (auto& device : policy.devices(Scope::tenant)) names.push_back(std::move(device));
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    std::erase_if(names, [&used](const std::string& name) {
        return name == any_device || name == total_device ||
               std::any_of(used.begin(), used.end(), [&](const Device& device) { return device.second == name; });
    });
    return names;
}

ResourceView tenant_view(const LimitsSegment& policy, const std::string& device, Resource resource, std::uint64_t usage,
                         std::optional<std::uint64_t> peak) {
    return {.resource = resource,
            .usage = usage,
            .limit = policy.limit(Scope::tenant, device, resource),
            .peak = peak,
            .configured = policy.configured(Scope::tenant, device, resource),
            .reason = policy.reason(Scope::tenant, device, resource),
            .guarantee = policy.guarantee(device, resource),
            .soft = policy.soft(device, resource),
            .grace_s = policy.grace_s(),
            .earmarked = policy.earmarked(device, resource),
            .written = policy.as_written(LimitPart::limit, Scope::tenant, device, resource)};
}

std::uint64_t since_in(const Ledger& ledger, std::uint32_t device, Resource resource) {
    return load(const_cast<Ledger&>(ledger).soft_since(device, resource));
}

std::uint64_t since_in(const LedgerCopy& ledger, std::uint32_t device, Resource resource) {
    return ledger.soft_since(device, resource);
}

template <class Source>
std::vector<DeviceView> read_tenant(const Source& ledger, const LimitsSegment& policy) {
    const auto devices = devices_of(ledger);
    const auto view = [&policy](const std::string& device, Resource r, std::uint64_t usage,
                                std::optional<std::uint64_t> peak) {
        return tenant_view(policy, device, r, usage, peak);
    };
    std::vector<DeviceView> views;
    std::uint64_t sums[resource_count] = {};
    const auto machine = machine_devices();
    const auto is_unused = [&](std::uint32_t at) {
        return std::all_of(resource_table.begin(), resource_table.end(), [&](const auto& row) { return ledger.tenant_usage(at, row.id) == 0; });
    };
    for (const auto& [number, name] : devices) {
        if (!is_device_of(machine, name) && is_unused(number)) continue;  // it is gone
        keep(views, read_device(name, [&, at = number, &device = name](Resource r) {
                 const auto usage = ledger.tenant_usage(at, r);
                 if (!is_port(device)) sums[index(r)] += usage;
                 auto read = view(device, r, usage, ledger.peak(at, r));
                 if (read.above_soft()) read.soft_since = since_in(ledger, at, r);
                 return read;
             }));
    }
    for (const auto& name : unused_devices(devices, machine, policy))
        keep(views, read_device(name, [&](Resource r) {
                 return view(name, r, 0, 0);
             }));
    auto total = read_device(std::string(total_device), [&](Resource r) {
        return view(std::string(total_device), r, sums[index(r)], {});
    });
    std::erase_if(total.resources, [](const ResourceView& view) { return view.limit == unlimited; });
    keep(views, std::move(total));
    return views;
}

bool any(const PastActivity& counts) {
    const auto set = [](std::uint64_t count) { return count != 0; };
    return set(counts.cq_events) || std::any_of(std::begin(counts.qp_to), std::end(counts.qp_to), set) ||
           std::any_of(std::begin(counts.qp_failed), std::end(counts.qp_failed), set);
}

template <class Source>
std::vector<ActivityView> read_activity(const Source& ledger, const std::function<PastActivity(std::uint32_t)>& read) {
    std::vector<ActivityView> views;
    for (const auto& [number, name] : devices_of(ledger))
        if (const auto counts = read(number); any(counts)) views.push_back({name, counts});
    return views;
}

// Leaves out what the process does not use.
template <class Source>
ProcessView read_process(const Source& ledger, const LimitsSegment& policy, const OwnerView& owner) {
    ProcessView process{owner.identity.pid, owner.identity.uid, owner.identity.comm, {}, {}};
    process.slot = owner.slot;
    process.start_time = owner.identity.start_time;
    process.activity = read_activity(ledger, [&](std::uint32_t device) { return ledger.activity(owner.slot, device); });
    const auto in_use = [&process](DeviceView view) {
        std::erase_if(view.resources, [](const ResourceView& resource) { return resource.usage == 0; });
        keep(process.devices, std::move(view));
    };
    std::uint64_t sums[resource_count] = {};
    for (const auto& [number, name] : devices_of(ledger))
        in_use(read_device(name, [&, at = number, &device = name](Resource r) {
            const auto usage = ledger.usage(owner.slot, at, r);
            if (!is_port(device)) sums[index(r)] += usage;
            // Looking up a limit costs, and a ledger can have 4096 owners on 64 devices.
            return ResourceView{r, usage, usage == 0 ? unlimited : policy.limit(Scope::process, device, r), {}, {}, {}};
        }));
    in_use(read_device(std::string(total_device), [&](Resource r) {
        const auto limit = policy.limit(Scope::process, total_device, r);
        return ResourceView{r, limit == unlimited ? 0 : sums[index(r)], limit, {}, {}, {}};
    }));
    return process;
}

std::size_t figures(const ProcessView& process) {
    std::size_t count = 1;
    for (const auto& device : process.devices) count += device.resources.size();
    return count + 16 * process.activity.size();
}

using DelaysByDevice = std::map<std::string, std::array<Ledger::Delays, rate_count>>;

void add_rates(std::vector<RateView>& rates, const LimitsSegment& policy, const std::string& device,
               const std::array<Ledger::Delays, rate_count>& delays) {
    for (const auto& row : rate_table) {
        const auto rate = row.id;
        RateView view{device, rate, policy.limit(Scope::tenant, device, rate), policy.configured(Scope::tenant, device, rate),
                      policy.soft(device, rate), policy.reason(Scope::tenant, device, rate), delays[rate_index(rate)]};
        if (view.limit != unlimited || view.delays.calls != 0) rates.push_back(std::move(view));
    }
}

std::vector<RateView> rates_of(const DelaysByDevice& devices, const LimitsSegment& policy) {
    std::vector<RateView> rates;
    for (const auto& [device, delays] : devices)
        if (!is_port(device) && device != total_device) add_rates(rates, policy, device, delays);
    add_rates(rates, policy, std::string(total_device), {});
    return rates;
}

template <class Source>
std::vector<RateView> rates_in(const Source& ledger, const LimitsSegment& policy) {
    DelaysByDevice delays;
    const auto devices = devices_of(ledger);
    for (const auto& [number, name] : devices) delays[name] = delays_of(ledger, number);
    for (auto& name : unused_devices(devices, machine_devices(), policy)) delays.try_emplace(std::move(name));
    return rates_of(delays, policy);
}

template <class Source>
TenantView snapshot_of(const Source& ledger, const LimitsSegment& policy) {
    TenantView tenant{policy.tenant(), policy.mode(), policy.weight(), read_tenant(ledger, policy), {}, {}, false, rates_in(ledger, policy)};
    tenant.activity = read_activity(ledger, [&](std::uint32_t device) { return ledger.tenant_activity(device); });
    std::size_t read = 0;
    for (const auto& owner : ledger.owners()) {
        if (read > most_figures) break;
        tenant.processes.push_back(read_process(ledger, policy, owner));
        read += figures(tenant.processes.back());
    }
    std::sort(tenant.processes.begin(), tenant.processes.end(),
              [](const ProcessView& a, const ProcessView& b) { return a.pid < b.pid; });
    return tenant;
}

}  // namespace

std::uint64_t ResourceView::grace_left_s() const {
    const auto now = boot_ns();
    const auto end = std::min(soft_since, now) + std::uint64_t{grace_s} * 1'000'000'000;
    constexpr std::uint64_t second = 1'000'000'000;
    // Rounded up: 0 says that the grace period is over, and the soft limit holds only then.
    return above_soft() && soft_since != 0 && end > now ? (end - now + second - 1) / second : 0;
}

double share_of_limit(std::uint64_t usage, std::uint64_t limit) noexcept {
    if (limit == unlimited || (limit == 0 && usage == 0)) return -1;
    return limit == 0 ? 1 : static_cast<double>(usage) / static_cast<double>(limit);
}

std::uint64_t ResourceView::room() const {
    const bool over = above_soft() && soft_since != 0 && grace_left_s() == 0;
    const auto bound = over ? std::min(soft, limit) : limit;
    return bound == unlimited ? unlimited : bound - std::min(bound, used());
}

std::string pid_text(const ProcessView& process) { return process.pid == 0 ? "-" : std::to_string(process.pid); }

TenantView take_snapshot(const Ledger& ledger, const LimitsSegment& policy) { return snapshot_of(ledger, policy); }

TenantView take_snapshot(const LedgerCopy& ledger, const LimitsSegment& policy) { return snapshot_of(ledger, policy); }

TenantView sum_of(const std::vector<const TenantView*>& below, const LimitsSegment& policy) {
    std::map<std::string, std::array<std::uint64_t, resource_count>> used;
    for (const auto* tenant : below)
        for (const auto& device : tenant->devices)
            if (device.name != total_device)
                for (const auto& view : device.resources) used[device.name][index(view.resource)] += view.usage;
    for (const auto& device : policy.devices(Scope::tenant))
        if (device != any_device && device != total_device) used.try_emplace(device);
    TenantView sum{policy.tenant(), policy.mode(), policy.weight(), {}, {}, {}, true};
    std::array<std::uint64_t, resource_count> total{};
    for (const auto& [name, usage] : used) {
        keep(sum.devices, read_device(name, [&, &device = name, &row = usage](Resource r) {
                 if (!is_port(device)) total[index(r)] += row[index(r)];
                 return tenant_view(policy, device, r, row[index(r)], {});
             }));
    }
    auto all = read_device(std::string(total_device), [&](Resource r) {
        return tenant_view(policy, std::string(total_device), r, total[index(r)], {});
    });
    std::erase_if(all.resources, [](const ResourceView& view) { return view.limit == unlimited; });
    keep(sum.devices, std::move(all));
    DelaysByDevice delays;
    for (const auto& [device, usage] : used) delays.try_emplace(device);
    for (const auto* tenant : below)
        for (const auto& view : tenant->rates) {
            auto& more = delays[view.device][rate_index(view.rate)];
            more = {more.calls + view.delays.calls, more.ns + view.delays.ns};
        }
    sum.rates = rates_of(delays, policy);
    return sum;
}

}  // namespace rdmaquota
