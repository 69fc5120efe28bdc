#include "tools/rdmaquotad/bypass/sanctions.hpp"

#include <algorithm>

#include <unistd.h>

namespace rdmaquota {
namespace {

constexpr auto too_old =
    "it is older than the ledger, or than the end of mode off, and may be charged elsewhere or not at all";

}  // namespace

bool Sanctions::bounded(const Bound& bound) const {
    return std::any_of(deeds_.begin(), deeds_.end(), [&](const auto& entry) { return entry.second.bound == bound; });
}

// Bounded by what the policy allows the tenant; where it says nothing, by what is in use. A cgroup that is bounded
// already, because of another bypass or as the tenant's own, stays so.
Result<void> Sanctions::bound(Activity& activity, const Bound& place, const PolicySegment& policy) {
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
    activity.bound = place;
    return {};
}

void Sanctions::let_go(Activity& activity) {
    const auto bound = std::exchange(activity.bound, std::nullopt);
    if (bound && !bounded(*bound)) backstop_.put_back(bound->first, bound->second);
}

// Told once, until there is another reason.
std::optional<Finding> Sanctions::kept(Activity& activity, Difference difference, const std::string& why) {
    if (std::exchange(activity.failure, why) == why) return std::nullopt;
    return Finding{Finding::Kind::bypass_kept, std::move(difference), why};
}

// Again, where the process has moved to another cgroup, or what was a bound of the tenant's own is none any more.
std::optional<Finding> Sanctions::limit(const ProcessDevice& place, Difference difference,
                                        const std::vector<Suspect>& suspects, std::uint64_t since,
                                        const PolicySegment& policy) {
    auto& activity = deeds_[place];
    const Bound here{difference.cgroup, difference.device};
    if (activity.limited && (here.first.empty() || (activity.limited == here && backstop_.bounds(here.first, here.second))))
        return std::nullopt;
    const bool older = since != UINT64_MAX && !suspects.empty() &&
                       std::all_of(suspects.begin(), suspects.end(), [since](const auto& one) {
                           return one.start_time != 0 && one.start_time <= since;
                       });
    if (older) return kept(activity, std::move(difference), too_old);
    let_go(activity);
    activity.limited.reset();
    if (const auto done = bound(activity, here, policy); !done) return kept(activity, std::move(difference), done.error());
    activity.limited = here;
    activity.failure.clear();
    return Finding{Finding::Kind::bypass_limited, std::move(difference), {}};
}

std::vector<Finding> Sanctions::kill(const ProcessDevice& place, const Difference& difference,
                                     const std::vector<Suspect>& suspects, std::uint64_t since) {
    auto& activity = deeds_[place];
    const bool all_slots = std::all_of(suspects.begin(), suspects.end(), [](const auto& one) { return one.has_slot; });
    std::vector<Finding> done;
    std::string why = "it cannot be killed";
    for (const auto& [pid, comm, start_time, has_slot] : suspects) {
        if (all_slots ? pid != difference.pid : has_slot) continue;
        if (pid <= 1 || pid == static_cast<std::uint32_t>(getpid())) continue;
        if (activity.killed.contains({pid, start_time})) continue;
        if (start_time != 0 && start_time <= since) why = too_old;
        if (start_time <= since || !kill_process(pid, start_time)) continue;
        activity.killed.insert({pid, start_time});
        auto whom = difference;
        whom.pid = pid;
        whom.comm = comm;
        done.push_back({Finding::Kind::bypass_killed, std::move(whom), {}});
    }
    if (!done.empty() || !activity.killed.empty()) return done;
    if (auto told = activity.failure.empty() ? kept(activity, difference, why) : std::nullopt) done.push_back(*told);
    return done;
}

void Sanctions::end(const ProcessDevice& place) {
    auto found = deeds_.extract(place);
    if (!found.empty()) let_go(found.mapped());
}

}  // namespace rdmaquota
