// What a quota leaves of a device's maxima (clamp_device_attr).
#include <algorithm>

#include "provider/charging/context.hpp"

namespace rdmaquota::provider {

bool Context::clamps(std::size_t i) {
    if (!device_.usable(i) || accounts_.account[i]->ledger().lost()) return false;
    const auto& policy = accounts_.account[i]->policy();
    return policy.clamp_device_attr() && policy.mode() == Mode::enforce;
}

bool Context::clamps() {
    bool any = false;
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!clamps(i)) continue;
        any = true;
        accounts_.account[i]->ledger().reap();  // what dead processes held is room
    }
    return any;
}

std::uint64_t Context::room(std::size_t i, Resource resource) {
    auto& account = *accounts_.account[i];
    Limits limits;
    device_.limits(account.policy(), i, Amounts{}.add(resource, 1), &limits);
    return account.ledger().room(account.owner(), device_.index(i), resource, limits);
}

// What is held counts too, so that a program that asks again after creating some sees the same maximum.
std::uint64_t Context::most(Resource resource) {
    std::uint64_t least = unlimited;
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!clamps(i)) continue;
        const auto more = std::min(room(i, resource), room(i, Resource::hca_object));
        const auto held = accounts_.account[i]->ledger().usage(accounts_.account[i]->owner().slot(), device_.index(i),
                                                               resource);
        if (more != unlimited) least = std::min(least, held + more);
    }
    return least;
}

std::uint64_t Context::largest(Resource resource) {
    std::uint64_t least = unlimited;
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (clamps(i)) least = std::min(least, room(i, resource));
    return least;
}

}  // namespace rdmaquota::provider
