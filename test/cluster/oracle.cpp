#include "test/cluster/oracle.hpp"

#include <algorithm>

namespace rdmaquota::cluster::sim {

// What all nodes hold by etcd's keys.
std::uint64_t Oracle::booked(std::uint64_t pool) const {
    std::uint64_t total = 0;
    if (epoch_ == lost_epoch_) return unknown;
    for (const auto& [name, node] : record_->roster)
        if (!keys_.contains(name) && (node.since_epoch != epoch_ || epoch_ >> 32 != 1)) return unknown;
    for (const auto& [name, key] : keys_) {
        const auto assigned = key.pools.find(pool);
        if (key.epoch != epoch_ || assigned == key.pools.end()) return unknown;
        total += assigned->second.held;
    }
    return total;
}

std::string Oracle::holders(const PoolName& pool) const {
    std::string text;
    for (const auto& host : cluster_.hosts) {
        const auto& node = host.node;
        const auto record = node.saved ? *CeilingRecord::parse(*node.saved) : CeilingRecord{};
        text += fmt::format("\n    # {} {} {}: {} in force or in use, took {} {}", node.name, node.alive ? "alive" : "dead", node.boot,
                            node.truth(pool), record.epoch, record.number);
    }
    return text;
}

std::string Oracle::difference(const std::map<std::string, NodeKey>& before) const {
    std::string text;
    for (const auto& [name, key] : keys_) {
        const auto found = before.find(name);
        text += fmt::format("\n    # {}: {}\n    #     {}", name, found == before.end() ? "none" : found->second.text(), key.text());
    }
    return text;
}

// I2: no write raises what is held above the limit, or above what it was.
void Oracle::look_at_etcd() {
    const auto& etcd = cluster_.etcd;
    const auto record = etcd.keys.find("cluster"), epoch = etcd.keys.find("epoch");
    if (record == etcd.keys.end() || epoch == etcd.keys.end()) return;
    record_ = *ClusterRecord::parse(record->second.value);
    const bool same_epoch = std::exchange(epoch_, Epoch::parse(epoch->second.value)->number) == epoch_;
    const auto keys_before = std::exchange(keys_, {});
    for (auto it = etcd.keys.lower_bound("node/"); it != etcd.keys.end() && it->first.starts_with("node/"); ++it)
        keys_.emplace(it->first.substr(5), *NodeKey::parse(it->second.value));
    std::map<std::uint64_t, Bound> bounds;
    for (const auto& pool : record_->pools) {
        const auto before = bounds_.find(pool.id);
        auto& bound = bounds[pool.id] = before == bounds_.end() ? Bound{pool.limit, unknown, pool.name, unknown} : before->second;
        bound.limit = pool.limit;
        const auto held = booked(pool.id), held_before = std::exchange(bound.booked, held);
        if (same_epoch && held != unknown && held_before != unknown && held > std::max(pool.limit, held_before) + forgotten(pool.id))
            problem_ = fmt::format("I2: a write raised what is held of pool {} from {} to {}, beyond {}{}", pool.id, held_before, held, pool.limit, difference(keys_before));
        bound.bound = std::max(bound.limit, std::min(bound.bound, held));
    }
    bounds_ = std::move(bounds);
}

// A backup from before a node, or its hardware, came to the cluster says nothing of it: nobody can notice what it holds.
void Oracle::restored() {
    lost_epoch_ = Epoch::parse(cluster_.etcd.keys.at("epoch").value)->number;
    look_at_etcd();
    for (std::size_t i = 0; i < cluster_.hosts.size(); ++i) {
        const auto& node = cluster_.hosts[i].node;
        const auto key = keys_.find(node.name);
        const bool is_alone = std::count_if(cluster_.hosts.begin(), cluster_.hosts.end(),
                                            [&](const auto& other) { return other.node.name == node.name; }) == 1;
        const bool is_known = record_->roster.contains(node.name) &&
                              (key == keys_.end() || key->second.hardware.empty() ? is_alone : key->second.hardware == node.hardware);
        if (!is_known) will_forget(i, Holds::as_it_does);
    }
}

void Oracle::will_forget(std::size_t host, Holds holds) {
    const auto& node = cluster_.hosts[host].node;
    Forgotten entry{host, node.boot, epoch_, 0, {}};
    if (const auto key = keys_.find(node.name); key != keys_.end()) {
        entry.number = key->second.number;
        for (const auto& [pool, assigned] : key->second.pools)
            if (holds == Holds::as_assigned) entry.held[pool] = std::max(assigned.held, assigned.ceiling);
    }
    for (const auto& [id, bound] : bounds_) {
        const bool is_unknown = holds == Holds::as_assigned && !entry.held.contains(id);  // a pool that was added again
        entry.held[id] = is_unknown ? max_amount : std::max(entry.held[id], node.truth(bound.name));
    }
    forgotten_.push_back(std::move(entry));
}

std::uint64_t Oracle::forgotten(std::uint64_t pool) {
    std::uint64_t total = 0;
    for (const auto& entry : forgotten_) {
        const auto found = entry.held.find(pool);
        const auto held = found != entry.held.end() ? found->second : cluster_.hosts[entry.host].node.truth(bounds_.at(pool).name);
        total += std::min(held, max_amount);
    }
    return total;
}

// A node that is in no roster, or that was forgotten, and comes back with what it has: that may be more than there is room for.
void Oracle::count_again() {
    const auto erased = std::erase_if(forgotten_, [&](const Forgotten& entry) {
        const auto& node = cluster_.hosts[entry.host].node;
        if (!node.alive || node.boot != entry.boot) return true;
        const auto key = keys_.find(node.name);  // until it is counted again
        return key != keys_.end() && key->second.boot == node.boot && (key->second.epoch > entry.epoch || key->second.number > entry.number);
    });
    if (erased == 0) return;
    for (auto& [id, bound] : bounds_) bound.bound = std::max(bound.bound, booked(id));
}

void Oracle::look_for_strangers() {
    for (std::size_t i = 0; i < cluster_.hosts.size(); ++i) {
        const auto& node = cluster_.hosts[i].node;
        if (!record_ || !node.alive) continue;
        const auto key = keys_.find(node.name);
        const bool is_replaced = key != keys_.end() && !key->second.hardware.empty() && key->second.hardware != node.hardware;
        const bool is_forgotten = key != keys_.end() && key->second.boot.empty();  // by a write that landed late, too
        const bool is_stranger = is_replaced || is_forgotten || (key == keys_.end() && !record_->roster.contains(node.name));
        if (is_stranger && std::none_of(forgotten_.begin(), forgotten_.end(), [&](const Forgotten& entry) { return entry.host == i; }))
            will_forget(i, Holds::as_it_does);
    }
}

std::string Oracle::broken() {
    ++checks;
    count_again();
    look_for_strangers();
    for (const auto& [id, bound] : bounds_) {
        if (bound.bound == unknown) continue;
        std::uint64_t total = 0;
        for (const auto& host : cluster_.hosts) total += std::min(host.node.truth(bound.name), max_amount);
        if (total > bound.bound + forgotten(id))
            problem_ = fmt::format("I1: pool {} has {} in use or in force, the bound is {}, the limit {}{}", id, total, bound.bound, bound.limit,
                                   holders(bound.name) + difference({}));
    }
    return problem_;
}

}  // namespace rdmaquota::cluster::sim
