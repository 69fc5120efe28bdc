// The order of moves. What is moved where is in share_plan.cpp.
#include "tools/common/shares/share_mover.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"

namespace rdmaquota {
namespace {

constexpr auto patience = std::chrono::milliseconds(100);

constexpr auto by_tenant = [](const auto& a, const auto& b) {
    return a.tenant != b.tenant ? a.tenant < b.tenant : a.pair < b.pair;
};

// `moves` are in the order of by_tenant.
template <class Move, class Visit>
void for_each_tenant(const std::vector<Move>& moves, Visit visit) {
    for (std::size_t begin = 0, end = 0; begin < moves.size(); begin = end) {
        while (end < moves.size() && moves[end].tenant == moves[begin].tenant) ++end;
        visit(moves[begin].tenant, std::span(moves.data() + begin, end - begin));
    }
}

}  // namespace

std::string shares_path(const std::string& directory) { return directory + "/shares"; }

Result<void> ShareMover::pass(std::span<const ShareMember> members, std::span<const std::string> devices, Wants wants,
                              Clock::time_point now, std::string_view only, Clock::duration most) {
    const bool paced = most != Clock::duration::max();
    const auto begin = paced ? Clock::now() : Clock::time_point::max();
    auto read_until = paced ? begin + most / 2 : begin, end = paced ? begin + most : begin;
    problem_.clear();
    lower_.clear();
    raise_.clear();
    touched_.clear();
    if (tree_.update(members, devices)) {
        divided_.assign(tree_.pairs(), {});
        debts_.clear();
        only = {};
        next_pair_ = 0;
        read_until = end = Clock::time_point::max();
    }
    complete_ = tree_.read_gates(now, only, read_until);
    bump_foreign();
    complete_ &= plan_all(wants, end);
    apply(lower_);
    step("read");
    for (std::size_t i = 0; i < lower_.size(); ++i)  // they are by tenant now
        if (i == 0 || lower_[i].tenant != lower_[i - 1].tenant)
            tree_.read_gates_of(tree_.tenants()[lower_[i].tenant], now);
    raise();
    finish();
    if (!problem_.empty()) return Error{problem_};
    return {};
}

bool ShareMover::has_raised(std::string_view tenant) const {
    return std::any_of(raised_.begin(), raised_.end(), [&](const Move& move) {
        const auto& one = tree_.tenants()[move.tenant];
        return one.key == tenant || one.name == tenant;
    });
}

bool ShareMover::plan_all(Wants wants, Clock::time_point end) {
    for (std::size_t done = 0; done < tree_.pairs(); ++done) {
        if (done != 0 && end != Clock::time_point::max() && Clock::now() >= end) return false;
        next_pair_ = next_pair_ + 1 < tree_.pairs() ? next_pair_ + 1 : 0;
        plan(next_pair_, wants);
    }
    return true;
}

// What somebody else changes meanwhile is read at the next pass; so it is where a tenant was removed.
template <class Change>
Result<void> ShareMover::change_limits(Tenant& tenant, Change change) {
    auto writer = LimitsWriter::open(tenant.limits_path, patience);
    const bool as_read = writer && writer->limits().generation() == tenant.generation;
    const auto changed = writer ? change(*writer) : Result<void>(Error{writer.error()});
    const bool removed = !writer && ::access(tenant.limits_path.c_str(), F_OK) != 0 && errno == ENOENT;
    if (!changed && !removed) problem_ = changed.error();
    if (changed && as_read) tenant.generation = writer->limits().generation();
    return changed;
}

void ShareMover::bump_foreign() {
    for (auto& tenant : tree_.tenants()) {
        if (!tenant.must_bump || !tenant.has_ledger) continue;
        const auto bump = [](LimitsWriter& writer) { return writer.bump(), Result<void>(); };
        if (!change_limits(tenant, bump)) continue;
        tenant.must_bump = false;
        step("bump");
    }
}

// By what is free now, which may be less than it was when it was divided: then the next pass goes on.
void ShareMover::raise() {
    raised_.clear();
    for (std::size_t i = 0; i < raise_.size(); ++i) {
        if (i == 0 || raise_[i].pair != raise_[i - 1].pair) find_room(raise_[i].pair);
        raise_one(raise_[i]);
    }
    apply(raised_);
}

void ShareMover::raise_one(const Move& move) {
    if (move.amount == unset) return raised_.push_back(move);
    const auto& tenants = tree_.tenants();
    const auto& cell = tenants[move.tenant].cells[move.pair];
    const auto has = committed(cell);
    auto more = move.amount - std::min(move.amount, has);
    const auto each_above = [&](auto&& visit) {
        for (auto above = tenants[move.tenant].parent;; above = tenants[above].parent) {
            visit(rooms_[above]);
            if (above == ShareTree::root) return;
        }
    };
    each_above([&](std::uint64_t room) { more = std::min(more, room); });
    const auto amount = std::min(move.amount, has + more);
    if (amount < move.amount) divided_[move.pair].settled = false;
    if (cell.granted == unset || amount <= cell.granted) return;
    each_above([&](std::uint64_t& room) {
        if (room != unlimited) room -= more;
    });
    raised_.push_back({move.tenant, move.pair, amount});
}

// Opens each tenant's limits once.
void ShareMover::apply(std::vector<Move>& moves) {
    std::sort(moves.begin(), moves.end(), by_tenant);
    for_each_tenant(moves, [&](std::size_t tenant, std::span<const Move> its) { apply_to(tenant, its); });
}

std::vector<LimitsWriter::Grant> ShareMover::grants_of(std::span<const Move> moves) const {
    std::vector<LimitsWriter::Grant> grants;
    for (const auto& move : moves)
        grants.push_back({tree_.device_of(move.pair), ShareTree::resource_of(move.pair), move.amount});
    return grants;
}

void ShareMover::apply_to(std::size_t number, std::span<const Move> moves) {
    auto& tenant = tree_.tenants()[number];
    const auto& above = tree_.tenants()[tenant.parent].name;
    const auto why = above == node_tenant ? std::string("its share of what the node's tenants may use")
                                          : fmt::format("its share of what {} may use", above);
    const auto granted = change_limits(tenant, [&](LimitsWriter& writer) {
        step("store");
        return writer.grant(grants_of(moves), why);
    });
    step("granted");
    for (const auto& move : moves) {
        if (granted) tenant.cells[move.pair].granted = move.amount;
        else divided_[move.pair].settled = false;
    }
    if (granted) moves_ += moves.size();
}

// Debts and earmarks, and what each can have charged at most by now, of what was touched in this pass.
void ShareMover::finish() {
    if (touched_.empty()) return;
    std::erase_if(debts_, [&](const ShareDebt& debt) {
        return std::any_of(touched_.begin(), touched_.end(), [&](std::size_t pair) {
            return debt.resource == ShareTree::resource_of(pair) && debt.device == tree_.device_of(pair);
        });
    });
    marks_.clear();
    for (const auto pair : touched_) {
        const bool owed = find_debts(pair);
        if (owed || divided_[pair].earmarked) earmark(pair, owed);
    }
    if (!marks_.empty()) write_earmarks();
}

// Whether there are any.
bool ShareMover::find_debts(std::size_t pair) {
    const auto before = debts_.size();
    for (auto& tenant : tree_.tenants()) {
        if (!tenant.is_leaf()) continue;
        auto& cell = tenant.cells[pair];
        if (!tenant.denies()) cell.ceiling = max_amount;
        else if (cell.used <= cell.bound()) cell.ceiling = cell.bound();
        if (cell.granted != unset && cell.used > cell.granted)
            debts_.push_back({tenant.name, tree_.device_of(pair), ShareTree::resource_of(pair), cell.used, cell.granted});
    }
    return debts_.size() != before;
}

void ShareMover::earmark(std::size_t pair, bool owed) {
    const auto& tenants = tree_.tenants();
    auto& divided = divided_[pair];
    due_.assign(tenants.size(), 0);
    if (owed) divide_below(ShareTree::root, divided.claims[ShareTree::root].limit, pair, Parts::fair, due_);
    divided.earmarked = false;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        const auto& cell = tenants[i].cells[pair];
        const auto has = std::max(cell.granted, cell.used), due = std::min(cell.need, due_[i]);
        const auto amount = tenants[i].is_leaf() && cell.is_unmet() && due > has ? due - has : 0;
        divided.earmarked |= amount != 0 || cell.earmarked != 0;
        if (amount != cell.earmarked && tenants[i].limits != nullptr) marks_.push_back({i, pair, amount});
    }
}

void ShareMover::write_earmarks() {
    std::sort(marks_.begin(), marks_.end(), by_tenant);
    for_each_tenant(marks_, [&](std::size_t number, std::span<const Move> marks) {
        auto& tenant = tree_.tenants()[number];
        if (!change_limits(tenant, [&](LimitsWriter& writer) { return writer.earmark(grants_of(marks)); })) return;
        for (const auto& mark : marks) tenant.cells[mark.pair].earmarked = mark.amount;
    });
}

std::vector<Earmark> ShareMover::earmarks() const {
    std::vector<Earmark> all;
    for (const auto& tenant : tree_.tenants())
        for (std::size_t pair = 0; pair < tenant.cells.size(); ++pair)
            if (const auto amount = tenant.cells[pair].earmarked; amount != 0)
                all.push_back({tenant.name, tree_.device_of(pair), ShareTree::resource_of(pair), amount});
    return all;
}

}  // namespace rdmaquota
