#include "tools/cluster/core/plan.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string_view>

#include "tools/cluster/core/permit.hpp"
#include "tools/common/shares/share_tree.hpp"

namespace rdmaquota::cluster {
namespace {

template <class Number>
Number excess(Number a, Number b) noexcept {
    return a - std::min(a, b);
}

std::uint64_t present(const Row& row) noexcept { return row.ceiling == unset ? 0 : row.ceiling; }

// What a node is given when it asks: some more, so that it does not ask for each object.
std::uint64_t with_headroom(Resource resource, std::uint64_t want, std::uint64_t limit) noexcept {
    return want == 0 ? 0 : std::min(std::max(want, add_headroom(resource, want)), std::max(want, limit));
}

// Whether a node lacks an assignment that it can have: for its boot, this epoch, each pool.
bool lacks_assignment(const Node& node, std::size_t pool) noexcept {
    return node.rows[pool].ceiling == unset && node.rows[pool].held != unknown;
}

// A pool that was removed is still among what the node was told.
bool has_removed_pool(const Books& books, const Node& node) {
    return node.key && std::any_of(node.key->pools.begin(), node.key->pools.end(), [&](const auto& entry) {
        const auto& pools = books.record().pools;
        return std::none_of(pools.begin(), pools.end(), [&](const Pool& pool) { return pool.id == entry.first; });
    });
}

bool needs_write(const Books& books, const Node& node) {
    for (std::size_t p = 0; p < node.rows.size(); ++p)
        if (node.rows[p].planned != unset || lacks_assignment(node, p)) return true;
    return has_removed_pool(books, node);
}

}  // namespace

void Planner::plan(Books& books, std::size_t pool) {
    reachable_.clear();
    Sum missing = 0;
    const auto limit = books.record().pools[pool].limit;
    const auto resource = books.record().pools[pool].name.resource;
    for (auto& [name, node] : books.nodes()) {
        auto& row = node.rows[pool];
        row.planned = unset;
        if (!node.is_reachable(books.epoch()) || row.held == unknown) continue;
        if (!node.in_roster) {
            if (present(row) != 0) row.planned = 0;
            continue;
        }
        reachable_.push_back(&node);
        if (row.is_hungry()) missing += excess(with_headroom(resource, row.want, limit), std::max(present(row), row.floor));
    }
    auto& sums = books.sums()[pool];
    sums.stale = false;
    const bool over = sums.held > limit;
    sums.is_short = over || (missing != 0 && (sums.reserved + missing > limit || sums.unknown_booked != 0));
    if (over || sums.reserved + missing > limit) divide(books, pool);
    else raise_all(books, pool);
}

// There is room for all that nodes want.
void Planner::raise_all(Books& books, std::size_t pool) {
    const auto& [id, name, limit] = books.record().pools[pool];
    for (auto* node : reachable_) {
        auto& row = node->rows[pool];
        const auto goal = std::max(row.floor, with_headroom(name.resource, row.want, limit));
        if ((row.is_hungry() || present(row) < row.floor) && goal > present(row)) row.planned = goal;
    }
}

void Planner::divide(Books& books, std::size_t pool) {
    const auto& [id, name, limit] = books.record().pools[pool];
    const auto& sums = books.sums()[pool];
    auto away = sums.reserved;
    claims_.clear();
    Sum coming = 0;  // was lowered, and is not acknowledged
    for (const auto* node : reachable_) {
        const auto& row = node->rows[pool];
        away -= std::max(row.floor, row.held);
        coming += excess(row.held, std::max(present(row), row.use));
        claims_.push_back({row.floor, limit, std::max(row.use, row.floor),
                           std::max(row.want, row.floor), node->weight});
    }
    const auto targets = division_.divide(static_cast<std::uint64_t>(excess(Sum{limit}, away)), claims_);
    const bool over = sums.held > limit;
    Sum missing = over ? sums.held - limit : 0;
    for (std::size_t i = 0; i < reachable_.size(); ++i) {
        auto& row = reachable_[i]->rows[pool];
        // Headroom is of what nobody wants.
        const auto goal = std::max(row.floor, std::min(with_headroom(name.resource, row.want, limit), targets[i]));
        if (row.is_hungry() && goal > present(row)) {
            row.planned = goal;
            missing += excess(goal, std::max(present(row), row.floor));
        } else if (row.use > targets[i] && targets[i] < present(row)) {
            row.planned = targets[i];  // what it frees goes to the others
        }
        claims_[i].wanted = targets[i];
    }
    take_back(pool, excess(missing, coming + (over ? 0 : excess(Sum{limit}, sums.reserved))));
}

// From those that have most to spare, no more than is missing.
void Planner::take_back(std::size_t pool, Sum missing) {
    struct Spare {
        std::uint64_t amount;
        std::size_t i;
    };
    std::vector<Spare> spares;
    for (std::size_t i = 0; i < reachable_.size(); ++i) {
        const auto& row = reachable_[i]->rows[pool];
        const auto keeps = std::max(claims_[i].wanted, row.use);
        if (row.planned == unset && present(row) > keeps) spares.push_back({present(row) - keeps, i});
    }
    std::sort(spares.begin(), spares.end(), [](const Spare& a, const Spare& b) { return a.amount > b.amount; });
    for (const auto& [amount, i] : spares) {
        if (missing == 0) return;
        reachable_[i]->rows[pool].planned = claims_[i].wanted;
        missing = excess(missing, Sum{amount});
    }
}

Planner::Unmet Planner::unmet(const Books& books, std::size_t pool) const {
    Unmet unmet;
    for (const auto& [name, node] : books.nodes())
        if (node.rows[pool].is_hungry()) {
            ++unmet.nodes;
            unmet.amount += node.rows[pool].want - present(node.rows[pool]);
        }
    return unmet;
}

// Those that hold less come first, so that what they free is there soon; then those whose acknowledgements etcd lacks, where
// somebody waits for that; then those that get more.
std::vector<NodeWrite> Planner::next(Books& books, std::uint64_t number) {
    const auto pools = books.record().pools.size();
    for (std::size_t p = 0; p < pools; ++p)
        if (books.sums()[p].stale) plan(books, p);
    Permit permit(books, number);
    std::map<std::string_view, Node*> raised;
    std::set<std::size_t> waiting;  // pools
    for (auto& [name, node] : books.nodes()) {
        if (permit.size() == most_nodes) return permit.take();
        if (node.key && !node.in_roster && permit.is_free(node)) permit.erase(node);
        if (!node.is_reachable(books.epoch()) || !needs_write(books, node)) continue;
        bool raises = false;
        for (std::size_t p = 0; p < pools; ++p)
            if (permit.is_raise(node, p)) {
                raises = true;
                waiting.insert(p);
            }
        if (raises) raised.emplace(name, &node);
        else permit.write(node);
    }
    for (const auto pool : waiting) {
        const auto missing = permit.missing(pool);
        for (auto& [name, node] : books.nodes()) {
            if (permit.size() + 1 >= most_nodes || permit.has_room(pool, missing)) break;
            if (node.rows[pool].held < node.rows[pool].booked && !raised.contains(name)) permit.write(node, Permit::Ceilings::as_they_are);
        }
    }
    for (const auto& [name, node] : raised) {
        if (permit.size() == most_nodes) break;
        permit.write(*node);
    }
    return permit.take();
}

}  // namespace rdmaquota::cluster
