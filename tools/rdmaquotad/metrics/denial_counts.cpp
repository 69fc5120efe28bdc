#include "tools/rdmaquotad/metrics/denial_counts.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "policy/limit.hpp"

namespace rdmaquota {
namespace {

bool is_denial(EventKind kind) {
    using enum EventKind;
    return kind == denied || kind == would_deny || kind == unproved || kind == refused_by_device;
}

// Members of the tenant can write any number.
std::string reason_of(const Event& event) {
    constexpr auto last = static_cast<std::uint32_t>(Reason::other);
    if (event.kind != EventKind::refused_by_device)
        return std::string(name(static_cast<Reason>(std::min(event.reason, last))));
    const char* error = ::strerrorname_np(static_cast<int>(event.error));
    return error == nullptr ? "unknown" : error;
}

}  // namespace

void DenialCounts::add(const std::string& tenant, const std::string& device, const Event& event, std::uint64_t more) {
    if (more == 0 || !is_denial(event.kind) || event.resource >= limit_count) return;
    auto& counts = tenants_[tenant];
    What what{event.kind, device, std::string(limit_table[event.resource].name), reason_of(event)};
    if (counts.size() >= most && !counts.contains(what)) what = {event.kind, "other", "other", "other"};
    counts[std::move(what)] += more;
}

void DenialCounts::keep(const std::function<bool(const std::string&)>& is_there) {
    std::erase_if(tenants_, [&](const auto& entry) { return !is_there(entry.first); });
}

}  // namespace rdmaquota
