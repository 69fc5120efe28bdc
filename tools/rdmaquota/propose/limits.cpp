#include "tools/rdmaquota/propose/limits.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "policy/limit.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

constexpr Resource usual[] = {Resource::qp, Resource::cq, Resource::mr, Resource::mr_bytes, Resource::hca_handle};
constexpr std::uint64_t much_more = 16, ample = 4, least = 16;

using Place = std::tuple<std::string, std::string, Scope, Resource>;
struct Denials {
    std::uint64_t count = 0, limit = 0;
};

// Up to two binary digits.
std::uint64_t rounded_up(std::uint64_t amount) {
    const auto digits = static_cast<int>(std::bit_width(amount));
    if (digits <= 2) return amount;
    const auto step = std::uint64_t{1} << (digits - 2);
    return (amount + step - 1) / step * step;
}

std::map<Place, Denials> denials_of(const EventsByTime& events, const std::string& since) {
    std::map<Place, Denials> all;
    for (const auto& [time, event] : events) {
        const auto resource = find_resource(text_member(event, "resource"));
        const auto scope = text_member(event, "scope");
        if ((text_member(event, "kind") != "denied" && text_member(event, "kind") != "would_deny") || text_member(event, "time") < since || !resource || !text_member(event, "reason").empty())
            continue;
        const auto of = scope.starts_with("process") ? Scope::process : Scope::tenant;
        const auto device = scope.ends_with("_total") ? std::string(total_device) : text_member(event, "device");
        auto& denials = all[{text_member(event, "tenant"), device, of, *resource}];
        denials.count += std::max<std::uint64_t>(number_member(event, "count"), 1);
        denials.limit = std::max(denials.limit, number_member(event, "limit"));
    }
    return all;
}

bool is_usual(Resource resource) { return std::find(std::begin(usual), std::end(usual), resource) != std::end(usual); }

void add_by_peak(std::vector<Proposal>& proposals, const TenantView& tenant, const DeviceView& device, const ResourceView& view) {
    const auto peak = view.peak.value_or(0);
    if (!is_usual(view.resource) || peak == 0) return;
    const auto wanted = rounded_up(std::max(ample * peak, info(view.resource).unit == Unit::bytes ? peak : least));
    if (view.configured != unlimited && (view.configured / much_more < peak || wanted >= view.configured)) return;
    const auto used = format_amount(view.resource, peak);
    proposals.push_back({tenant.name, device.name, Scope::tenant, view.resource, view.configured, wanted,
                         view.configured == unlimited ? fmt::format("no limit; {} at most so far", used)
                                                      : fmt::format("{} at most so far", used)});
}

}  // namespace

std::vector<Proposal> propose(const std::vector<TenantView>& tenants, const EventsByTime& events, const std::string& since) {
    const auto denied = denials_of(events, since);
    std::vector<Proposal> proposals;
    for (const auto& [place, denials] : denied) {
        const auto& [tenant, device, scope, resource] = place;
        if (denials.limit != 0)
            proposals.push_back({tenant, device, scope, resource, denials.limit, 2 * denials.limit,
                                 fmt::format("denied {} time{}", denials.count, denials.count == 1 ? "" : "s")});
    }
    for (const auto& tenant : tenants) {
        if (tenant.is_sum) continue;
        for (const auto& device : tenant.devices)
            for (const auto& view : device.resources)
                if (!denied.contains({tenant.name, device.name, Scope::tenant, view.resource})) add_by_peak(proposals, tenant, device, view);
    }
    std::stable_sort(proposals.begin(), proposals.end(),
                     [](const auto& a, const auto& b) { return std::tie(a.tenant, a.device) < std::tie(b.tenant, b.device); });
    return proposals;
}

}  // namespace rdmaquota
