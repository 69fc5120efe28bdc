#include "provider/charging/place.hpp"

#include <unistd.h>

#include <fmt/core.h>

#include "provider/host/keep_errno.hpp"
#include "provider/host/sidecar_request.hpp"
#include "provider/host/subject.hpp"
#include "shm/paths.hpp"
#include "shm/policy/node_policy.hpp"

namespace rdmaquota::provider {
namespace {

bool has_limits(const std::string& here) { return access(limits_path(here).c_str(), F_OK) == 0; }

bool is_made(const std::string& here) {
    return has_limits(here) && access(data_path(ledger_path(here)).c_str(), F_OK) == 0;
}

std::string rule_words(const NodePolicy::Verdict& found) {
    if (!found.match) return found.hidden ? "its cgroup is not known, and no other match holds" : "no match holds";
    return fmt::format("match {} of {}", *found.match + 1, found.from);
}

}  // namespace

Result<Place> find_place(const std::string& directory) {
    const KeepErrno keep;
    if (has_limits(directory)) return Place{directory, directory, false, "the directory is its own", {}};
    const auto policy = NodePolicy::read(node_policy_path(directory), NodePolicy::Parts::without_sidecar);
    if (!policy) return Error{policy.error()};
    const OwnSubject subject(*policy);
    const auto found = policy->find(subject.view());
    Place place{directory, here_path(directory, found.tenant), found.tenant == default_tenant, rule_words(found),
                {}};
    if (place.is_default || !is_template(found.from) || is_made(place.here)) return place;
    ask_for_tenant(directory);
    if (is_made(place.here)) return place;
    place.note = fmt::format("tenant {} has not been made yet, so on devices that are opened now this program is charged "
                             "in tenant {}; start rdmaquotad, or run 'rdmaquota reload' as root",
                             found.tenant, default_tenant);
    place.here = here_path(directory);
    place.is_default = true;
    return place;
}

}  // namespace rdmaquota::provider
