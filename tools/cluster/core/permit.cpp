#include "tools/cluster/core/permit.hpp"

#include <algorithm>

namespace rdmaquota::cluster {

// The highest ceiling that can be written without room: the one that the node was assigned, or, for another boot, epoch or pool, what
// it holds.
std::uint64_t Permit::present(const Node& node, std::size_t pool) const noexcept {
    const auto& row = node.rows[pool];
    return row.ceiling != unset ? row.ceiling : row.held;
}

bool Permit::is_raise(const Node& node, std::size_t pool) const noexcept {
    const auto& row = node.rows[pool];
    return row.planned != unset && row.held != unknown && row.planned > present(node, pool);
}

Sum Permit::missing(std::size_t pool) const noexcept {
    Sum missing = 0;
    for (const auto& [name, node] : books_.nodes())
        if (is_raise(node, pool) && node.rows[pool].planned > node.rows[pool].held)
            missing += node.rows[pool].planned - node.rows[pool].held;
    return missing;
}

bool Permit::has_room(std::size_t pool, Sum missing) const noexcept {
    return sums_[pool].booked + missing <= books_.record().pools[pool].limit;
}

bool Permit::is_free(const Node& node) const noexcept {
    return has_acknowledged(Books::known(node, books_.epoch())) &&
           std::all_of(node.rows.begin(), node.rows.end(), [](const Row& row) { return row.held == 0; });
}

std::uint64_t Permit::permitted(const Node& node, std::size_t pool, Ceilings which) const noexcept {
    const auto& row = node.rows[pool];
    const auto as_it_is = row.ceiling != unset ? row.ceiling : std::min(row.held, std::max(row.want, row.floor));
    const auto wanted = which == Ceilings::as_planned && row.planned != unset ? row.planned : as_it_is;
    if (wanted <= present(node, pool)) return wanted;
    // A raise. What this node's key says it holds is replaced by this write.
    const auto& sums = sums_[pool];
    const Sum limit = books_.record().pools[pool].limit;
    if (sums.unknown_booked != (row.booked == unknown ? 1 : 0)) return as_it_is;
    const auto others = sums.booked - (row.booked == unknown ? 0 : row.booked);
    const auto room = static_cast<std::uint64_t>(limit - std::min(limit, others));
    return std::max(as_it_is, row.held <= room ? std::min(wanted, room) : 0);
}

void Permit::book(const Node& node, std::size_t pool, std::uint64_t held) {
    const auto before = node.rows[pool].booked;
    auto& sums = sums_[pool];
    sums.booked = sums.booked - (before == unknown ? 0 : before) + held;
    sums.unknown_booked -= before == unknown;
}

void Permit::write(Node& node, Ceilings which) {
    if (!node.report || written_.contains(node.name)) return;
    NodeKey key;
    key.epoch = books_.epoch();
    key.boot = node.report->boot;
    key.hardware = node.report->hardware;
    key.number = node.key ? node.key->number : 0;
    bool assigns = !node.key || key.boot != node.key->boot || key.epoch != node.key->epoch;
    for (std::size_t p = 0; p < node.rows.size(); ++p) {
        const auto& row = node.rows[p];
        if (row.held == unknown) continue;
        const auto ceiling = permitted(node, p, which);
        // Rule 1: held falls by an acknowledgement alone.
        key.pools[books_.record().pools[p].id] = {ceiling, std::max(ceiling, row.held)};
        assigns |= ceiling != row.ceiling;
    }
    if (node.key)
        for (const auto& [id, assigned] : node.key->pools) assigns |= !key.pools.contains(id);
    if (assigns) key.number = number_;
    if (node.key && key == *node.key) return;
    for (std::size_t p = 0; p < node.rows.size(); ++p)
        if (const auto found = key.pools.find(books_.record().pools[p].id); found != key.pools.end())
            book(node, p, found->second.held);
    written_.insert(node.name);
    writes_.push_back({node.name, std::move(key), node.key_revision, false});
}

void Permit::erase(const Node& node) { writes_.push_back({node.name, {}, node.key_revision, true}); }

}  // namespace rdmaquota::cluster
