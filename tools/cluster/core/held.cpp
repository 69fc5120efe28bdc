#include "tools/cluster/core/held.hpp"

#include <algorithm>

namespace rdmaquota::cluster {
namespace {

const Assigned* find(const NodeKey* key, std::uint64_t pool) noexcept {
    if (key == nullptr) return nullptr;
    const auto found = key->pools.find(pool);
    return found == key->pools.end() ? nullptr : &found->second;
}

const PoolUse* find(const NodeReport* report, std::uint64_t pool) noexcept {
    if (report == nullptr) return nullptr;
    const auto found =
        std::find_if(report->pools.begin(), report->pools.end(), [&](const PoolUse& use) { return use.id == pool; });
    return found == report->pools.end() ? nullptr : &*found;
}

// A node without a ceiling holds more than any pool has.
std::uint64_t bound_of(const PoolUse* use) noexcept { return use == nullptr ? unknown : std::min(use->bound, max_amount); }

}  // namespace

std::uint64_t held(const NodeKnown& node, std::uint64_t pool) noexcept {
    // Rule 6: a node that never reported holds nothing beyond its floor. Rule 9: in a later epoch nobody knows.
    if (node.report == nullptr) return booked(node, pool);
    if (node.report->epoch != node.epoch) return unknown;
    const auto* use = find(node.report, pool);
    const auto* assigned = find(node.key, pool);
    // Rule 4: another boot refuses the ceilings in the key. It holds what it says is in force, which is not always nothing.
    if (!is_current(node)) return bound_of(use);
    // Rule 7: of a pool that was added, or added again, the node holds what it says once no older ceiling can reach it.
    if (assigned == nullptr) return has_acknowledged(node) ? bound_of(use) : unknown;
    // Rule 1.
    return has_acknowledged(node) && use != nullptr ? std::max(assigned->ceiling, bound_of(use)) : assigned->held;
}

std::uint64_t booked(const NodeKnown& node, std::uint64_t pool) noexcept {
    if (node.key == nullptr) {
        if (node.report != nullptr) return held(node, pool);
        return node.is_new ? 0 : unknown;
    }
    if (node.key->epoch != node.epoch) return unknown;
    const auto* assigned = find(node.key, pool);
    return assigned == nullptr ? unknown : assigned->held;
}

}  // namespace rdmaquota::cluster
