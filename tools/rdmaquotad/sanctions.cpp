#include "tools/rdmaquotad/sanctions.hpp"

#include <algorithm>

#include <unistd.h>

namespace rdmaquota {

bool Sanctions::bounded(const Bound& bound) const {
    return std::any_of(deeds_.begin(), deeds_.end(), [&](const auto& entry) { return entry.second.bound == bound; });
}

// Bounded by what the policy allows the tenant; where it says nothing, by what is in use. A cgroup that is bounded
// already, because of another bypass or as the tenant's own, stays so.
Result<void> Sanctions::bound(Deeds& deeds, const Bound& place, const PolicySegment& policy) {
    const auto& [cgroup, device] = place;
    if (cgroup.empty()) return Error{"its cgroup is not known"};
    const bool ours = bounded(place);
    if (!ours && backstop_.bounds(cgroup, device)) return {};
    if (!ours) {
        const auto used = backstop_.current(cgroup, device);
        if (!used) return Error{used.error()};
        const auto allowed = [&, &device = device](Resource resource, std::uint64_t now) {
            const auto limit = policy.limit(Scope::tenant, device, resource);
            return limit == unlimited ? now : limit;
        };
        if (auto set = backstop_.set(cgroup, device, {allowed(Resource::hca_handle, used->handle),
                                                      allowed(Resource::hca_object, used->object)});
            !set)
            return set;
    }
    deeds.bound = place;
    return {};
}

std::optional<Finding> Sanctions::limit(const Place& place, Difference difference, const PolicySegment& policy) {
    auto& deeds = deeds_[place];
    if (std::exchange(deeds.tried, true)) return std::nullopt;
    const auto done = bound(deeds, {difference.cgroup, difference.device}, policy);
    return Finding{done ? Finding::Kind::bypass_limited : Finding::Kind::bypass_kept, std::move(difference),
                   done ? "" : done.error()};
}

std::vector<Finding> Sanctions::kill(const Place& place, const Difference& difference,
                                     const std::vector<Suspect>& suspects, std::uint64_t ledger_made) {
    auto& deeds = deeds_[place];
    const bool first = !std::exchange(deeds.tried, true);
    const bool all_slots = std::all_of(suspects.begin(), suspects.end(), [](const auto& one) { return one.has_slot; });
    std::vector<Finding> done;
    std::string why = "it cannot be killed";
    for (const auto& [pid, comm, start_time, has_slot] : suspects) {
        if (all_slots ? pid != difference.pid : has_slot) continue;
        if (pid <= 1 || pid == static_cast<std::uint32_t>(getpid())) continue;
        if (deeds.killed.contains({pid, start_time})) continue;
        if (start_time != 0 && start_time <= ledger_made) 
            why = "it is older than the ledger, and may be charged in another";
        if (start_time <= ledger_made || !kill_process(pid, start_time)) continue;
        deeds.killed.insert({pid, start_time});
        auto whom = difference;
        whom.pid = pid;
        whom.comm = comm;
        done.push_back({Finding::Kind::bypass_killed, std::move(whom), {}});
    }
    if (first && done.empty()) done.push_back({Finding::Kind::bypass_kept, difference, why});
    return done;
}

void Sanctions::end(const Place& place) {
    const auto found = deeds_.extract(place);
    if (found.empty() || !found.mapped().bound) return;
    const auto& bound = *found.mapped().bound;
    if (!bounded(bound)) backstop_.put_back(bound.first, bound.second);
}

}  // namespace rdmaquota
