#include "tools/common/shares/share_tree.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "policy/tenant.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

constexpr std::uint64_t smallest_step = 16, smallest_step_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t steps_of_hysteresis = 4;
constexpr auto nowhere = static_cast<std::size_t>(-1);

// Wants change by an eighth of what is used.
std::uint64_t step_of(Resource resource, std::uint64_t need) noexcept {
    std::uint64_t step = info(resource).unit == Unit::bytes ? smallest_step_bytes : smallest_step;
    while (step < need / 16) step *= 2;
    return step;
}

}  // namespace

std::uint64_t add_headroom(Resource resource, std::uint64_t need) noexcept {
    const auto step = step_of(resource, need);
    return (need / step + 1) * step;
}

std::uint64_t committed(const ShareTree::Cell& cell) noexcept {
    return std::max(cell.granted == unset ? 0 : cell.granted, cell.used);
}

bool ShareTree::update(std::span<const ShareMember> members, std::span<const std::string> machine) {
    bool moved = !is_same(members);
    if (moved) place(members);
    for (std::size_t i = 0; i < members.size(); ++i) {
        auto& tenant = tenants_[members_[i]];
        tenant.limits = members[i].limits;
        tenant.at_rest = members[i].at_rest;
    }
    if (has_other_devices(machine)) {
        list_devices(machine);
        moved = true;
    }
    bool read = moved;
    for (auto& tenant : tenants_)
        if (tenant.limits != nullptr && !is_read(tenant)) {
            read_limits(tenant);
            read = true;
        }
    if (read) find_bounded();
    return moved;
}

bool ShareTree::is_same(std::span<const ShareMember> members) const noexcept {
    return !tenants_.empty() && std::equal(members.begin(), members.end(), members_.begin(), members_.end(),
                                          [&](const ShareMember& member, std::size_t number) {
                                              const auto& tenant = tenants_[number];
                                              return tenant.key == member.key && tenant.name == member.name &&
                                                     tenant.has_ledger == member.has_ledger;
                                          });
}

// Keeps what is known of those who stay. A parent that has no limits of its own is passed over.
void ShareTree::place(std::span<const ShareMember> members) {
    std::map<std::string, Tenant, std::less<>> known;
    for (auto& tenant : tenants_) known.emplace(tenant.key, std::move(tenant));
    tenants_.assign(1, Tenant{});
    tenants_[root].key = tenants_[root].name = node_tenant;
    members_.clear();
    std::map<std::string_view, std::size_t> numbers;
    for (const auto& member : members) {
        const bool is_root = member.key == node_tenant;
        members_.push_back(is_root ? root : tenants_.size());
        auto& tenant = is_root ? tenants_[root] : tenants_.emplace_back();
        if (const auto found = known.find(member.key); found != known.end()) tenant = std::move(found->second);
        tenant.key = member.key;
        tenant.name = member.name;
        tenant.limits_path = limits_path(std::string(member.here));
        tenant.ledger_path = ledger_path(std::string(member.here));
        tenant.has_ledger = member.has_ledger;
        tenant.children.clear();
        if (!is_root) numbers.emplace(member.key, members_.back());
    }
    for (std::size_t i = 1; i < tenants_.size(); ++i) {
        auto above = parent_of(tenants_[i].key);
        while (above != node_tenant && !numbers.contains(above)) above = parent_of(above);
        tenants_[i].parent = above == node_tenant ? root : numbers.at(above);
        tenants_[tenants_[i].parent].children.push_back(i);
    }
    order();
}

void ShareTree::order() {
    upwards_.assign(1, root);
    for (std::size_t next = 0; next < upwards_.size(); ++next)
        for (const auto child : tenants_[upwards_[next]].children) upwards_.push_back(child);
    std::reverse(upwards_.begin(), upwards_.end());
    std::fill(changed_.begin(), changed_.end(), std::uint8_t{1});
    for (auto& tenant : tenants_) tenant.cells.resize(pairs());
}

bool ShareTree::is_read(const Tenant& tenant) const noexcept {
    return tenant.id == tenant.limits->id() && tenant.generation == tenant.limits->generation();
}

bool ShareTree::has_other_devices(std::span<const std::string> machine) const {
    if (devices_.empty() || !std::equal(machine.begin(), machine.end(), machine_.begin(), machine_.end())) return true;
    return std::any_of(tenants_.begin(), tenants_.end(), [&](const Tenant& tenant) {
        if (tenant.limits == nullptr || is_read(tenant)) return false;
        const auto rows = tenant.limits->devices(Scope::tenant);
        return std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return device_number(row) == nowhere; });
    });
}

// What is known of cells is forgotten, and read again.
void ShareTree::list_devices(std::span<const std::string> machine) {
    machine_.assign(machine.begin(), machine.end());
    std::set<std::string> names(machine.begin(), machine.end());
    names.insert({std::string(any_device), std::string(total_device)});
    for (const auto& tenant : tenants_)
        if (tenant.limits != nullptr) names.merge([&] {
            const auto rows = tenant.limits->devices(Scope::tenant);
            return std::set<std::string>(rows.begin(), rows.end());
        }());
    devices_.assign(names.begin(), names.end());
    changed_.assign(pairs(), 1);
    bounded_.assign(pairs(), 0);
    sums_.assign(pairs(), {});
    for (auto& tenant : tenants_) {
        tenant.cells.assign(pairs(), {});
        tenant.id = 0;
        tenant.gates = {};
        tenant.in_use = true;  // so that they are read, also of one at rest
    }
}

std::size_t ShareTree::device_number(std::string_view device) const noexcept {
    const auto found = std::lower_bound(devices_.begin(), devices_.end(), device);
    return found != devices_.end() && *found == device ? static_cast<std::size_t>(found - devices_.begin()) : nowhere;
}

// A share that is not the one that is known here was stored by another mover, maybe without the bump.
void ShareTree::read_limits(Tenant& tenant) {
    tenant.id = tenant.limits->id();
    tenant.generation = tenant.limits->generation();
    read_weight(tenant);
    for (std::size_t d = 0; d < devices_.size(); ++d) {
        const auto figures = tenant.limits->share_figures(devices_[d]);
        for (std::size_t r = 0; r < limit_count; ++r) {
            const auto pair = d * limit_count + r;
            auto& cell = tenant.cells[pair];
            const auto& now = figures[r];
            if (now.granted != unset && now.granted != cell.granted) tenant.must_bump = true;
            if (now.limit != cell.limit || now.guarantee != cell.guarantee || now.granted != cell.granted)
                changed_[pair] = 1;
            cell.limit = now.limit;
            cell.guarantee = now.guarantee;
            cell.granted = now.granted;
            cell.earmarked = now.earmarked;
        }
    }
}

void ShareTree::read_weight(Tenant& tenant) {
    const auto weight = std::clamp(tenant.limits->weight(), std::uint32_t{1}, most_weight);
    if (weight != tenant.weight) std::fill(changed_.begin(), changed_.end(), std::uint8_t{1});
    tenant.weight = weight;
}

void ShareTree::find_bounded() {
    for (std::size_t pair = 0; pair < pairs(); ++pair) {
        const bool bounded = std::any_of(tenants_.begin(), tenants_.end(), [&](const Tenant& tenant) {
            return tenant.is_inner() && tenant.cells[pair].limit != unlimited;
        });
        if (bounded != is_bounded(pair)) changed_[pair] = 1;
        bounded_[pair] = bounded;
    }
}

bool ShareTree::read_gates(Clock::time_point now, std::string_view only, Clock::time_point end) {
    if (!only.empty()) {
        for (auto& tenant : tenants_)
            if (tenant.key == only || tenant.name == only) read_gates_if_used(tenant, now);
            else if (now >= tenant.ask_ends) sum_up(tenant, now);
        return left_to_read_ == 0;  // of a pass before
    }
    const bool paced = end != Clock::time_point::max();
    if (!paced || left_to_read_ == 0 || left_to_read_ > tenants_.size()) left_to_read_ = tenants_.size();
    while (left_to_read_ != 0) {
        read_gates_if_used(tenants_[--left_to_read_], now);
        if (paced && Clock::now() >= end) break;
    }
    return left_to_read_ == 0;
}

void ShareTree::read_gates_if_used(Tenant& tenant, Clock::time_point now) {
    if (!tenant.has_ledger) return;
    if (!(tenant.at_rest && !tenant.in_use)) return read_gates_of(tenant, now);
    if (read_kernel(tenant) || now >= tenant.ask_ends) sum_up(tenant, now);
}

void ShareTree::read_gates_of(Tenant& tenant, Clock::time_point now) {
    const bool changed = tenant.gates.read(tenant.ledger_path);
    const bool counted = read_kernel(tenant);
    if (!changed && !counted && now < tenant.ask_ends) return;
    take_asks(tenant, now);
    sum_up(tenant, now);
}

bool ShareTree::read_kernel(Tenant& tenant) {
    uses_.clear();
    if (kernel_uses_) kernel_uses_(tenant.key, uses_);
    if (uses_ == tenant.kernel) return false;
    std::swap(uses_, tenant.kernel);
    return true;
}

void ShareTree::take_asks(Tenant& tenant, Clock::time_point now) {
    const auto& gates = tenant.gates.gates();
    tenant.asks.resize(gates.size());
    for (std::size_t i = 0; i < gates.size(); ++i)
        for (std::size_t r = 0; r < limit_count; ++r) {
            const auto word = gates[i].wanted[r];
            auto& ask = tenant.asks[i][r];
            if (word != 0 && word != ask.word) ask = {word, wanted_amount(word), now + asking_lasts};
        }
}

ShareTree::Places ShareTree::places_of(std::string_view device) const noexcept {
    return {device_number(device), is_port(device) ? nowhere : device_number(total_device)};
}

void ShareTree::add_to_sum(const Places& places, std::size_t resource, const Sum& more) {
    for (const auto d : places) {
        if (d == nowhere) continue;
        auto& sum = sums_[d * limit_count + resource];
        sum.used = std::min(sum.used + more.used, max_amount);
        sum.need = std::min(sum.need + more.need, max_amount);
        sum.whole |= more.whole;
    }
}

// A device that asked and is not used any more wants nothing: whoever asked is gone, with all that it had.
void ShareTree::add_gates(Tenant& tenant, std::size_t number, Clock::time_point now) {
    const auto& gates = tenant.gates.gates()[number];
    const bool used = std::any_of(gates.gate.begin(), gates.gate.end(), [](std::uint64_t gate) { return gate != 0; });
    const auto kernel = std::find_if(tenant.kernel.begin(), tenant.kernel.end(),
                                     [&](const CountedUse& use) { return use.device == gates.device; });
    const auto places = places_of(gates.device);
    for (std::size_t r = 0; r < resource_count; ++r) {
        const auto& ask = tenant.asks[number][r];
        const bool asks = used && now < ask.until;
        if (asks) tenant.ask_ends = std::min(tenant.ask_ends, ask.until);
        const bool whole = kernel != tenant.kernel.end() && kernel->whole[r];
        const auto counted = kernel != tenant.kernel.end() ? kernel->used[r] : 0;  // is added by add_kernel
        const auto own = whole ? counted : std::max(gates.gate[r], counted);
        const auto need = std::max(own, asks ? ask.amount : 0);
        add_to_sum(places, r, {own - counted, need - counted, whole});
    }
    for (const auto& row : rate_table) {
        const auto& ask = tenant.asks[number][index(row.id)];
        const bool asks = now < ask.until;
        if (asks) tenant.ask_ends = std::min(tenant.ask_ends, ask.until);
        if (used || asks) add_to_sum(places, index(row.id), {0, max_amount, false});
    }
    tenant.in_use |= used;
}

void ShareTree::add_kernel(const Tenant& tenant) {
    for (const auto& use : tenant.kernel) {
        const auto places = places_of(use.device);
        for (std::size_t r = 0; r < resource_count; ++r)
            add_to_sum(places, r, {use.used[r], use.used[r], use.whole[r]});
    }
}

// What the kernel counts is there. A gate beyond what its tenant may have is not.
void ShareTree::sum_up(Tenant& tenant, Clock::time_point now) {
    sums_.assign(pairs(), {});
    tenant.ask_ends = Clock::time_point::max();
    tenant.in_use = false;
    for (std::size_t i = 0; i < tenant.asks.size(); ++i) add_gates(tenant, i, now);
    add_kernel(tenant);
    const bool denies = tenant.denies();
    for (std::size_t pair = 0; pair < pairs(); ++pair) {
        auto& cell = tenant.cells[pair];
        auto& sum = sums_[pair];
        if (denies && !sum.whole) sum.used = std::min(sum.used, std::max(cell.ceiling, cell.bound()));
        if (cell.used != sum.used || cell.need != sum.need) changed_[pair] = 1;
        cell.used = sum.used;
        const auto before = std::exchange(cell.need, sum.need);
        if (keep_lately(cell, before, pair, now)) tenant.ask_ends = std::min(tenant.ask_ends, cell.lately_ends);
    }
}

// What a program gives back and creates again is still wanted meanwhile. True when that is more than is needed now.
bool ShareTree::keep_lately(Cell& cell, std::uint64_t before, std::size_t pair, Clock::time_point now) noexcept {
    if (before == cell.lately) cell.lately_ends = now + asking_lasts;
    const bool falls_far = cell.need == 0 || cell.lately > cell.need + steps_of_hysteresis * step_of(resource_of(pair), cell.need);
    if (cell.need < cell.lately && !falls_far && now < cell.lately_ends) return true;
    if (cell.need != cell.lately) changed_[pair] = 1;
    cell.lately = cell.need;
    return false;
}

std::uint64_t ShareTree::used_in_steps(const Tenant& tenant, std::size_t pair) const noexcept {
    const auto amount = tenant.cells[pair].used;
    const auto step = step_of(resource_of(pair), amount);
    return (amount + step - 1) / step * step;
}

std::uint64_t ShareTree::wanted(Tenant& tenant, std::size_t pair) noexcept {
    const auto need = tenant.cells[pair].need;
    auto& last = tenant.cells[pair].wanted;
    if (need == 0) return last = 0;
    const auto step = step_of(resource_of(pair), need);
    if (last > need && last <= need + steps_of_hysteresis * step) return last;
    return last = add_headroom(resource_of(pair), need);
}

}  // namespace rdmaquota
