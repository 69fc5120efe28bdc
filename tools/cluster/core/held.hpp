// What a node may hold of a pool at most, by what etcd keeps and what the node reported. A pure function.
//
// Everything that the coordinators promise rests on it: no ceiling rises unless the sum of this over all nodes stays within the
// pool's limit. test/model/cluster.pml has the same, HELD.
#pragma once

#include <cstdint>
#include <optional>

#include "tools/cluster/core/record.hpp"

namespace rdmaquota::cluster {

// Above every amount: nobody knows.
inline constexpr std::uint64_t unknown = UINT64_MAX;

struct NodeKnown {
    const NodeKey* key = nullptr;        // null: etcd has none
    const NodeReport* report = nullptr;  // the newest of this leader's time; null: none
    std::uint64_t epoch = 0;             // of the cluster
    bool is_new = false;                 // was added to the roster in this epoch
};

// Whether the ceilings in the key are for the boot that reports, and this epoch: rules 4 and 9.
inline bool is_current(const NodeKnown& node) noexcept {
    return node.key != nullptr && node.report != nullptr && node.key->boot == node.report->boot && node.key->epoch == node.epoch;
}

// Whether the node acknowledged exactly the newest assignment.
inline bool has_acknowledged(const NodeKnown& node) noexcept {
    return is_current(node) && node.report->number == node.key->number;
}

std::uint64_t held(const NodeKnown& node, std::uint64_t pool) noexcept;

// The same by etcd alone: what a leader that starts now knows. Rule 3 compares sums of this with the limit, so that what was
// acknowledged is in etcd before it is handed on. Without a key it is what the node reported.
std::uint64_t booked(const NodeKnown& node, std::uint64_t pool) noexcept;

// Wide enough for what any number of nodes hold.
__extension__ typedef unsigned __int128 Sum;

}  // namespace rdmaquota::cluster
