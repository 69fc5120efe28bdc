// Judges a simulated cluster after each step, by what its nodes really have and by etcd's keys alone.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "test/cluster/cluster.hpp"

namespace rdmaquota::cluster::sim {

class Oracle {
public:
    explicit Oracle(Cluster& cluster) : cluster_(cluster) {
        cluster.etcd.changed = [this] { look_at_etcd(); };
    }
    // I1: what nodes use or may use is never above the limit, or what was held when the limit was lowered. Empty: so it is.
    std::string broken();
    // Before a node is forgotten that may live: what it holds comes on top until it hears of that.
    enum class Holds : std::uint8_t { as_it_does, as_assigned };
    void will_forget(std::size_t host, Holds holds = Holds::as_assigned);
    // Etcd was replaced by a backup: what it says of this epoch is not what nodes hold.
    void restored();
    void look_at_etcd();

    std::uint64_t checks = 0;

private:
    struct Bound {
        std::uint64_t limit = 0, bound = 0;  // `unknown`: not yet, since nodes may hold something from before the pool was added
        PoolName name;
        std::uint64_t booked = unknown;
    };
    struct Forgotten {
        std::size_t host;
        std::string boot;
        std::uint64_t epoch, number;  // of the newest assignment before
        std::map<std::uint64_t, std::uint64_t> held;
    };
    std::uint64_t booked(std::uint64_t pool) const;
    std::string holders(const PoolName& pool) const;
    std::string difference(const std::map<std::string, NodeKey>& before) const;
    std::uint64_t forgotten(std::uint64_t pool);
    void count_again();
    void look_for_strangers();

    Cluster& cluster_;
    std::map<std::uint64_t, Bound> bounds_;
    std::vector<Forgotten> forgotten_;
    std::optional<ClusterRecord> record_;
    std::map<std::string, NodeKey> keys_;
    std::uint64_t epoch_ = 0, lost_epoch_ = 0;
    std::string problem_;
};

}  // namespace rdmaquota::cluster::sim
