#include "provider/charging/hidden_devices.hpp"

#include <string>

#include "provider/charging/place.hpp"
#include "provider/host/environment.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "shm/policy/node_policy.hpp"

namespace rdmaquota::provider {
namespace {

// Not inlined: a program that lists devices may have a small stack, and few policies come here.
[[gnu::noinline]] bool hides(const std::string& directory, DeviceKey device) {
    const auto place = find_place(directory);
    if (!place) return false;
    const auto limits = LimitsSegment::open(limits_path(place->here), LimitsSegment::Parts::all);
    return limits && limits->hides_devices() && limits->mode() == Mode::enforce &&
           limits->configured(Scope::tenant, device, Resource::hca_handle) == 0;
}

bool is_hidden_by(const QuotaDirectory& directory, DeviceKey device) {
    auto some = NodePolicy::hides_devices(node_policy_path(directory.path));
    const bool elsewhere = !some && directory.second;
    if (elsewhere) some = NodePolicy::hides_devices(node_policy_path(directory.second));
    return some.value_or(false) && hides(elsewhere ? directory.second : directory.path, device);
}

}  // namespace

bool is_hidden(DeviceKey device) noexcept try {
    for (const auto& directory : quota_directories())
        if (is_hidden_by(directory, device)) return true;
    return false;
} catch (...) {  // no memory
    return false;
}

}  // namespace rdmaquota::provider
