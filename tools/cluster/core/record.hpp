// What etcd keeps of the cluster, and how it is written there. Each value is text, so that etcdctl shows it.
//
//   PREFIX/cluster       ClusterRecord: pools with their limits, the roster of nodes. Changed by `rdmaquota cluster apply` alone.
//   PREFIX/epoch         Epoch
//   PREFIX/turn          a number, which every write of ceilings compares and raises
//   PREFIX/leader        the name of the coordinator that leads; with its lease
//   PREFIX/node/NAME     NodeKey: what was assigned to a node, and what it may hold at most
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/cluster/ceilings.hpp"

namespace rdmaquota::cluster {

struct Pool {
    std::uint64_t id = 0;  // above the revision of the record to which it was added: rule 7, no two pools have the same in an epoch
    PoolName name;
    std::uint64_t limit = 0;
    bool operator==(const Pool&) const = default;
};

struct RosterNode {
    std::uint32_t weight = 100;
    std::uint64_t since_epoch = 0;  // in which it was added: what it holds is known to be nothing until it reports
    std::map<PoolName, std::uint64_t> floors;  // reserved for it, used or not
    bool operator==(const RosterNode&) const = default;
};

struct ClusterRecord {
    std::vector<Pool> pools;
    std::map<std::string, RosterNode, std::less<>> roster;

    const Pool* find(const PoolName& name) const noexcept;
    std::uint64_t floor(std::string_view node, const PoolName& pool) const noexcept;
    std::string text() const;
    static Result<ClusterRecord> parse(std::string_view text);
    bool operator==(const ClusterRecord&) const = default;
};

// A delivery to a sidecar is one request of its control socket.
inline constexpr std::size_t most_pools = 100;

// Pools that stay keep their id, others get one above `revision`; nodes that stay keep since_epoch. An error where the floors of a
// pool exceed its limit.
Result<ClusterRecord> apply(const ClusterRecord& present, ClusterRecord next, std::uint64_t revision, std::uint64_t epoch);

// A share of a pool that a node was assigned. Rule 1: `held` is the larger of the ceiling and what it held before, and falls
// only when the node acknowledged exactly this assignment.
struct Assigned {
    std::uint64_t ceiling = 0, held = 0;
    bool operator==(const Assigned&) const = default;
};

struct NodeKey {
    std::uint64_t epoch = 0, number = 0;
    std::string boot;      // empty: the node was forgotten
    std::string hardware;  // rule 5: no other hardware reports under the node's name until the node is forgotten
    std::map<std::uint64_t, Assigned> pools;  // by id
    bool operator==(const NodeKey&) const = default;

    std::string text() const;
    static Result<NodeKey> parse(std::string_view text);
};

// Rule 9. An epoch begins when etcd lost what it knew. The upper half counts; the lower is random, so that two clusters that come
// from one backup do not begin the same epoch. `lead` is how far etcd's raft index is ahead of its revision.
struct Epoch {
    std::uint64_t number = 0;
    std::uint64_t lead = 0;

    static std::uint64_t after(std::uint64_t highest, std::uint32_t random) noexcept {
        return ((highest >> 32) + 1) << 32 | random;
    }
    // No etcd was lost before it: a node that is added now holds nothing. Later the backup may be from before the node was added.
    static bool is_first(std::uint64_t number) noexcept { return number >> 32 == 1; }
    std::string text() const;
    static Result<Epoch> parse(std::string_view text);
};

}  // namespace rdmaquota::cluster
