#include "tools/cluster/core/books.hpp"

#include <algorithm>

namespace rdmaquota::cluster {
namespace {

std::uint64_t or_nothing(std::uint64_t amount) noexcept { return amount == unknown ? 0 : amount; }

}  // namespace

NodeKnown Books::known(const Node& node, std::uint64_t epoch) noexcept {
    return {node.key ? &*node.key : nullptr, node.report ? &*node.report : nullptr, epoch, node.is_new};
}

void Books::set_record(ClusterRecord record, std::uint64_t epoch) {
    record_ = std::move(record);
    epoch_ = epoch;
    for (const auto& [name, entry] : record_.roster) node(name);
    sums_.assign(record_.pools.size(), {});
    for (auto it = nodes_.begin(); it != nodes_.end();) {
        auto& [name, node] = *it;
        const auto entry = record_.roster.find(name);
        node.in_roster = entry != record_.roster.end();
        node.is_new = node.in_roster && entry->second.since_epoch == epoch && Epoch::is_first(epoch);
        node.weight = node.in_roster ? entry->second.weight : 1;
        if (!node.in_roster && !node.key) {
            it = nodes_.erase(it);
            continue;
        }
        fill(node);
        add(node);
        ++it;
    }
}

void Books::clear() {
    nodes_.clear();
    sums_.clear();
    record_ = {};
}

Node& Books::node(std::string_view name) {
    auto found = nodes_.find(name);
    if (found == nodes_.end()) {
        found = nodes_.emplace(name, Node{}).first;
        found->second.name = name;
    }
    return found->second;
}

Node* Books::find(std::string_view name) noexcept {
    const auto found = nodes_.find(name);
    return found == nodes_.end() ? nullptr : &found->second;
}

template <class Change>
void Books::change(std::string_view name, Change change) {
    auto& changed = node(name);
    subtract(changed);
    const auto before = changed.rows;
    change(changed);
    fill(changed);
    add(changed);
    mark_stale(before, changed);
}

void Books::set_key(std::string_view name, std::optional<NodeKey> key, std::uint64_t revision) {
    change(name, [&](Node& node) {
        node.key = std::move(key);
        node.key_revision = revision;
    });
}

void Books::set_report(std::string_view name, NodeReport report) {
    change(name, [&](Node& node) { node.report = std::move(report); });
}

void Books::drop_report(std::string_view name) {
    change(name, [](Node& node) { node.report.reset(); });
}

// Rule 8: a report stays when its node is cut off, and so does what the node holds.
void Books::set_connected(std::string_view name, bool connected) {
    change(name, [&](Node& node) { node.connected = connected; });
    for (auto& sums : sums_) sums.stale = true;
}

void Books::add(const Node& node) {
    for (std::size_t p = 0; p < node.rows.size(); ++p) {
        const auto& row = node.rows[p];
        auto& sums = sums_[p];
        sums.booked += or_nothing(row.booked);
        sums.held += or_nothing(row.held);
        sums.reserved += std::max(row.floor, or_nothing(row.held));
        sums.unknown_booked += row.booked == unknown;
    }
}

void Books::subtract(const Node& node) {
    for (std::size_t p = 0; p < node.rows.size(); ++p) {
        const auto& row = node.rows[p];
        auto& sums = sums_[p];
        sums.booked -= or_nothing(row.booked);
        sums.held -= or_nothing(row.held);
        sums.reserved -= std::max(row.floor, or_nothing(row.held));
        sums.unknown_booked -= row.booked == unknown;
    }
}

// What a node uses below its ceiling concerns nobody while all have what they want.
void Books::mark_stale(const std::vector<Row>& before, const Node& node) {
    for (std::size_t p = 0; p < node.rows.size(); ++p) {
        const auto& row = node.rows[p];
        const bool is_other = p >= before.size() || row.held != before[p].held || row.booked != before[p].booked ||
                              row.ceiling != before[p].ceiling;
        if (is_other || row.is_hungry() || sums_[p].is_short) sums_[p].stale = true;
    }
}

void Books::remove(std::string_view name) {
    const auto found = nodes_.find(name);
    if (found == nodes_.end()) return;
    subtract(found->second);
    nodes_.erase(found);
}

bool Books::is_stale() const noexcept {
    return std::any_of(sums_.begin(), sums_.end(), [](const PoolSums& sums) { return sums.stale; });
}

void Books::fill(Node& node) {
    const auto state = known(node, epoch_);
    const bool current = is_current(state);
    node.rows.resize(record_.pools.size());
    for (std::size_t p = 0; p < node.rows.size(); ++p) {
        const auto& pool = record_.pools[p];
        auto& row = node.rows[p];
        row = {};
        row.held = held(state, pool.id);
        row.booked = booked(state, pool.id);
        row.floor = record_.floor(node.name, pool.name);
        if (current)
            if (const auto assigned = node.key->pools.find(pool.id); assigned != node.key->pools.end())
                row.ceiling = assigned->second.ceiling;
        if (!node.report) continue;
        for (const auto& use : node.report->pools)
            if (use.id == pool.id) {
                row.use = use.use;
                row.want = use.want;
            }
    }
}

}  // namespace rdmaquota::cluster
