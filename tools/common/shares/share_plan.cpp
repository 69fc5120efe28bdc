// What a pass divides, and which shares it lowers and raises for it.
#include <algorithm>

#include "policy/tenant.hpp"
#include "tools/common/shares/share_mover.hpp"

namespace rdmaquota {
namespace {

std::uint64_t excess(std::uint64_t a, std::uint64_t b) noexcept { return a - std::min(a, b); }

bool same_terms(const ShareClaim& a, const ShareClaim& b) noexcept {
    return a.limit == b.limit && a.guarantee == b.guarantee && a.weight == b.weight;
}

}  // namespace

// Divides when something changed since the last division, and finds what is to be lowered for it.
void ShareMover::plan(std::size_t pair, Wants wants) {
    auto& divided = divided_[pair];
    const bool changed = tree_.take_changed(pair);
    if (!changed && (divided.settled || !tree_.is_bounded(pair))) return;
    touched_.push_back(pair);
    if (!tree_.is_bounded(pair)) return release(pair);
    claim(pair, wants, Used::in_steps);
    if (divided.settled && divided.in_steps == claims_ && !is_unmet(pair)) return;
    divided.in_steps = claims_;
    claim(pair, wants, Used::exactly);
    // Other limits, guarantees or weights: then all shares are made anew, else only those that somebody wants.
    const bool all =
        !std::equal(claims_.begin(), claims_.end(), divided.claims.begin(), divided.claims.end(), same_terms);
    divided.claims = claims_;
    divided.targets.assign(claims_.size(), unlimited);
    divide_below(ShareTree::root, divided.claims[ShareTree::root].limit, pair, Parts::now, divided.targets);
    divided.settled = true;
    lower(pair, divided, all);
}

// Whether somebody who asked lacks something.
bool ShareMover::is_unmet(std::size_t pair) const noexcept {
    const auto& tenants = tree_.tenants();
    return std::any_of(tenants.begin(), tenants.end(), [&](const Tenant& tenant) {
        return tenant.is_leaf() && tenant.cells[pair].is_unmet();
    });
}

void ShareMover::claim(std::size_t pair, Wants wants, Used counted) {
    auto& tenants = tree_.tenants();
    const bool by_use = wants == Wants::use && tree_.device_of(pair) != any_device;
    claims_.resize(tenants.size());
    for (const auto i : tree_.upwards()) {
        claims_[i] = claim_of(tenants[i], pair, by_use, counted);
        if (!tenants[i].children.empty()) claim_for_those_below(i, pair);
    }
}

ShareClaim ShareMover::claim_of(Tenant& tenant, std::size_t pair, bool by_use, Used counted) {
    const auto& cell = tenant.cells[pair];
    ShareClaim claim{std::min(cell.guarantee, cell.limit), cell.limit, 0, 0, tenant.weight};
    if (tenant.limits == nullptr || !tenant.is_leaf()) return claim;
    // Who has what it needs, has its headroom of what nobody wants, and not at the cost of others.
    const auto in_all = tree_.wanted(tenant, pair);
    const auto wanted = counted == Used::exactly && !cell.is_unmet() ? cell.lately : in_all;
    claim.wanted = std::min(by_use ? wanted : claim.limit, claim.limit);
    // Steps are for what is within the share; not every charge there is a new division.
    const auto granted = cell.granted == unset ? cell.used : cell.granted;
    const bool in_steps = counted == Used::in_steps && cell.used <= granted;
    claim.used = in_steps ? std::min(tree_.used_in_steps(tenant, pair), granted) : cell.used;
    claim.used = std::max(claim.used, claim.guarantee);
    return claim;
}

void ShareMover::claim_for_those_below(std::size_t parent, std::size_t pair) {
    auto& claim = claims_[parent];
    const auto own = tree_.tenants()[parent].own_use(pair);
    auto guarantee = own, used = own, wanted = own;
    for (const auto child : tree_.tenants()[parent].children) {
        guarantee = std::min(guarantee + claims_[child].guarantee, max_amount);
        used = std::min(used + claims_[child].used, max_amount);
        wanted = std::min(wanted + std::min(claims_[child].wanted, max_amount), max_amount);
    }
    claim.guarantee = std::min(std::max(claim.guarantee, guarantee), claim.limit);
    claim.used = std::max(used, claim.guarantee);
    claim.wanted = std::min(std::max(wanted, claim.guarantee), claim.limit);
}

void ShareMover::divide_below(std::size_t parent, std::uint64_t total, std::size_t pair, Parts which,
                              std::vector<std::uint64_t>& parts) {
    const auto& claims = divided_[pair].claims;
    const auto& tenants = tree_.tenants();
    const auto& children = tenants[parent].children;
    if (total == unlimited) {
        for (const auto child : children) parts[child] = claims[child].limit;
    } else {
        below_.clear();
        for (const auto child : children) below_.push_back(claims[child]);
        const auto now = division_.divide(excess(total, tenants[parent].own_use(pair)), below_);
        const auto amounts = which == Parts::now ? now : division_.fair();
        for (std::size_t i = 0; i < children.size(); ++i) parts[children[i]] = amounts[i];
    }
    for (const auto child : children)
        if (!tenants[child].children.empty()) divide_below(child, parts[child], pair, which, parts);
}

// What is free below each tenant with a limit.
void ShareMover::find_room(std::size_t pair) {
    const auto& tenants = tree_.tenants();
    needed_.assign(tenants.size(), 0);  // what is taken
    rooms_.assign(tenants.size(), unlimited);
    for (const auto i : tree_.upwards()) {
        if (tenants[i].has_ledger) needed_[i] += committed(tenants[i].cells[pair]);
        if (i != ShareTree::root)
            needed_[tenants[i].parent] = std::min(needed_[tenants[i].parent] + needed_[i], unlimited / 2);
        if (tenants[i].is_inner() && tenants[i].cells[pair].limit != unlimited)
            rooms_[i] = excess(tenants[i].cells[pair].limit, needed_[i]);
    }
}

bool ShareMover::is_bounded(std::size_t tenant) const noexcept {
    const auto& tenants = tree_.tenants();
    for (auto above = tenants[tenant].parent;; above = tenants[above].parent) {
        if (rooms_[above] != unlimited) return true;
        if (above == ShareTree::root) return false;
    }
}

void ShareMover::take(std::size_t tenant, std::size_t pair, std::uint64_t target) {
    const auto& tenants = tree_.tenants();
    const auto& cell = tenants[tenant].cells[pair];
    const auto freed = excess(committed(cell), std::max(target, cell.used));
    lower_.push_back({tenant, pair, target});
    for (auto above = tenants[tenant].parent;; above = tenants[above].parent) {
        if (rooms_[above] != unlimited) rooms_[above] += freed;
        if (above == ShareTree::root) return;
    }
}

// Only who has processes, below a tenant with a limit, has a share.
void ShareMover::lower(std::size_t pair, const Divided& divided, bool all) {
    const auto& tenants = tree_.tenants();
    find_room(pair);
    std::fill(needed_.begin(), needed_.end(), 0);
    surplus_.clear();
    for (std::size_t i = 1; i < tenants.size(); ++i) {
        if (tenants[i].limits == nullptr) continue;
        const auto& cell = tenants[i].cells[pair];
        const auto target = divided.targets[i];
        if (tenants[i].was_leaf() && (rooms_[i] != unlimited || is_bounded(i))) {
            if (cell.used < cell.granted) lower_.push_back({i, pair, cell.used});
        } else if (!tenants[i].is_leaf() || !is_bounded(i)) {
            if (cell.granted != unset) raise_.push_back({i, pair, unset});
        } else if (target < cell.granted) {
            if (all || cell.granted == unset || cell.used > target) take(i, pair, target);
            else surplus_.push_back({cell.granted - std::max(target, cell.used), i});
        } else if (target > cell.granted && (all || cell.granted < divided.claims[i].wanted || cell.used > cell.granted)) {
            needed_[i] = excess(target, committed(cell));
            raise_.push_back({i, pair, target});
        }
    }
    if (!surplus_.empty()) lower_to_spare(pair, divided);
}

// No more is taken from those who have to spare than is missing, and most from who has most.
void ShareMover::lower_to_spare(std::size_t pair, const Divided& divided) {
    const auto& tenants = tree_.tenants();
    std::sort(surplus_.begin(), surplus_.end(),
              [](const Surplus& a, const Surplus& b) { return a.amount > b.amount; });
    for (const auto i : tree_.upwards())
        if (i != ShareTree::root)
            needed_[tenants[i].parent] = std::min(needed_[tenants[i].parent] + needed_[i], max_amount);
    const auto is_below = [&](std::size_t i, std::size_t above) {
        while (i != ShareTree::root)
            if ((i = tenants[i].parent) == above) return true;
        return false;
    };
    for (std::size_t above = 0; above < tenants.size(); ++above)
        for (auto& [amount, i] : surplus_) {
            if (rooms_[above] == unlimited || needed_[above] <= rooms_[above]) break;
            if (amount == 0 || !is_below(i, above)) continue;
            take(i, pair, divided.targets[i]);
            amount = 0;
        }
}

// Nothing above has a limit any more.
void ShareMover::release(std::size_t pair) {
    divided_[pair] = {};
    const auto& tenants = tree_.tenants();
    for (std::size_t i = 1; i < tenants.size(); ++i)
        if (tenants[i].limits != nullptr && tenants[i].cells[pair].granted != unset) raise_.push_back({i, pair, unset});
}

}  // namespace rdmaquota
