#include "tools/common/guard/guard_rows.hpp"

#include <algorithm>
#include <cerrno>
#include <set>

#include "policy/tenant.hpp"
#include "shm/ledger/pace.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/guard/kernel_word.hpp"

namespace rdmaquota {
namespace {

void store(u64& word, u64 value) { __atomic_store_n(&word, value, __ATOMIC_RELAXED); }

// The limits of a tenant for a device, or for the sum; of each process as they hold now.
template <typename Limit>
void store_limits(guard_row& row, Limit&& limit) {
    for (std::uint32_t place = 0; place < guard_resources; ++place) {
        const auto resource = guarded_resource(place);
        const u64 value = std::min<u64>(resource ? limit(*resource) : unlimited, guard_no_limit);
        if (row.limit[place] != value) store(row.limit[place], value);
    }
}

// From twice the burst on, and a second beyond it at least: what has waited in the provider may be made later than it was paid for. A
// burst that is too long to calculate with makes no rate.
guard_pace guarded_pace(std::uint64_t rate, std::uint64_t burst) {
    constexpr u64 second = 1'000'000'000;
    const auto pace = pace_of(rate, burst);
    if (rate == 0) return {1, 0, 0};
    const auto limit = pace.burst_ns + std::max(pace.burst_ns, second);
    if (pace.unit == 0 || limit > guard_longest_pace) return {};
    return {std::max<u64>(pace.unit >> (32 - guard_pace_shift), 1), limit, 0};
}

// `rate_of` and `burst_of` a rate. What is ahead by another one says nothing about this one.
template <typename Rate, typename Burst>
void store_paces(guard_row& row, Rate&& rate_of, Burst&& burst_of) {
    for (const auto& rate : rate_table) {
        const auto pace = guarded_pace(rate_of(rate.id), burst_of(rate.id));
        auto& stored = row.pace[rate_index(rate.id)];
        if (stored.limit_ns == pace.limit_ns && stored.unit == pace.unit) continue;
        store(stored.unit, 0);  // none, while the other two change
        store(stored.limit_ns, pace.limit_ns);
        store(stored.paid, 0);
        __atomic_store_n(&stored.unit, pace.unit, __ATOMIC_RELEASE);
    }
}

bool has_pace(const guard_row& row) {
    return std::any_of(std::begin(row.pace), std::end(row.pace), [](const guard_pace& pace) { return pace.unit != 0; });
}

bool bounds_anything(const guard_row& row) {
    return has_pace(row) || std::any_of(std::begin(row.limit), std::end(row.limit), [](u64 limit) { return limit != guard_no_limit; });
}

// What it had when it was another's.
void begin(guard_row& row, std::uint32_t number) {
    std::fill(std::begin(row.limit), std::end(row.limit), guard_no_limit);
    std::fill(std::begin(row.refused), std::end(row.refused), 0);
    std::fill(std::begin(row.pace), std::end(row.pace), guard_pace{});
    row.enforced = row.total = row.exceeded = 0;
    row.next = number;
}

bool counts_nothing(const guard_row& row) {
    return std::all_of(std::begin(row.used), std::end(row.used), [](const u64& used) { return load_relaxed(used) == 0; });
}

// Of sums that may be below zero for a moment.
bool exceeds(u64 used, u64 limit) { return static_cast<std::int64_t>(used) > static_cast<std::int64_t>(limit); }

// The provider charges objects, address handles and bytes too that some drivers make without the kernel, or in their own way.
bool counts_all_of(Resource resource) {
    return resource != Resource::ah && resource != Resource::hca_object && resource != Resource::mr_bytes;
}

}  // namespace

std::optional<Resource> guarded_resource(std::uint32_t place) noexcept {
    using enum Resource;
    switch (place) {
        case kind_handle: return hca_handle;
        case kind_pd: return pd;
        case kind_cq: return cq;
        case kind_qp: return qp;
        case kind_srq: return srq;
        case kind_ah: return ah;
        case kind_mr: return mr;
        case kind_mw: return mw;
        case kind_flow: return flow;
        case kind_xrcd: return xrcd;
        case kind_rwq_ind: return rwq_ind;
        case kind_wq: return wq;
        case kind_dm: return dm;
        case kind_counters: return counters;
        case guard_object: return hca_object;
        case guard_mr_bytes: return mr_bytes;
        case guard_dm_bytes: return dm_bytes;
        case guard_commands: return commands_per_s;
        case guard_registered: return registered_per_s;
        default: return std::nullopt;
    }
}

GuardRows::GuardRows(guard_row* rows, const GuardNames& names, May may) : rows_(rows), names_(names), may_(may) {
    std::set<std::uint32_t> taken;
    for (const auto& [name, number] : names.all()) {
        if (!taken.insert(number).second) continue;
        enter({std::string(tenant_of(name)), std::string(device_of(name)), static_cast<Scope>(name.scope)},
              std::string(tenant_of(name)), number);
    }
    if (!taken.empty()) next_ = *taken.rbegin() + 1;
    for (std::uint32_t number = process_rows; number < next_; ++number)
        if (!taken.contains(number)) free_.push_back(number);
}

bool GuardRows::update(const Members& tenants, const std::vector<std::string>& devices) {
    std::vector<std::string> known(devices);
    without_ = 0;
    const auto denied = std::exchange(denies_, {});  // tenants come and go
    have_node(devices);
    for (const auto& tenant : tenants) {
        known.push_back("/" + std::string(tenant.key));
        follow(tenant, devices);
    }
    refresh_processes();
    rows_[0].paced = std::any_of(numbers_.begin(), numbers_.end(), [&](const auto& entry) { return has_pace(rows_[entry.second]); });
    if (may_ == May::drop) drop_unused(tenants, devices);
    return std::exchange(known_, known) != known || denies_ != denied;
}

void GuardRows::enter(const Key& key, const std::string& name, std::uint32_t number) {
    const auto& [tenant, device, scope] = key;
    meanings_[number] = {name, device, scope, tenant};
    if (scope == Scope::tenant && device != total_device) tenants_[{tenant, device}] = number;
    numbers_[key] = number;
}

std::uint32_t GuardRows::take_free() {
    if (free_.empty()) return next_ < guard_rows ? next_++ : 0;
    const auto number = free_.back();
    free_.pop_back();
    return number;
}

// 0, and counted, where there is none left.
std::uint32_t GuardRows::have(const Key& key, std::string_view name) {
    if (const auto found = numbers_.find(key); found != numbers_.end()) {
        meanings_[found->second].tenant = name;
        return found->second;
    }
    if (may_ == May::follow) return 0;
    const auto& [tenant, device, scope] = key;
    const auto number = take_free();
    if (number == 0 || !names_.put(guard_name_of(tenant, device, scope), number)) {
        if (number != 0) free_.push_back(number);
        ++without_;
        return 0;
    }
    begin(rows_[number], number);
    enter(key, std::string(name), number);
    return number;
}

// The node counts also where the policy bounds nothing.
void GuardRows::have_node(const std::vector<std::string>& devices) {
    const std::string node(node_tenant);
    for (const auto& device : devices) have({node, device, Scope::tenant}, node);
    denies_.try_emplace(node, Denies{EDQUOT, false});
    link(node, devices);
}

void GuardRows::follow(const ShareMember& tenant, const std::vector<std::string>& devices) {
    denies_[std::string(tenant.key)] = {tenant.limits->deny_errno(), tenant.limits->mode() == Mode::off};
    for (const auto& device : devices) follow_device(tenant, device);
    link(std::string(tenant.key), devices);
}

void GuardRows::follow_device(const ShareMember& tenant, const std::string& device) {
    const auto& limits = *tenant.limits;
    const std::string key(tenant.key), name = UverbsDevices::now().name(device);
    const bool enforced = limits.mode() == Mode::enforce, off = limits.mode() == Mode::off;
    if (const auto number = have({key, device, Scope::tenant}, tenant.name)) {
        auto& row = rows_[number];
        const auto figures = limits.share_figures(name);
        store_limits(row, [&](Resource resource) { return off ? unlimited : figures[index(resource)].limit; });
        store_paces(row, [&](Resource rate) { return off ? unlimited : figures[index(rate)].limit; },
                    [&](Resource rate) { return limits.soft(name, rate); });
        row.total = follow_total(tenant, Scope::tenant);
        row.enforced = enforced;
    }
    if (!tenant.has_ledger) return;
    if (const auto number = have({key, device, Scope::process}, tenant.name)) {
        auto& row = rows_[number];
        const auto each = [&](Resource resource) { return off ? unlimited : limits.limit(Scope::process, name, resource); };
        store_limits(row, each);
        store_paces(row, each, [](Resource) { return unlimited; });
        row.total = follow_total(tenant, Scope::process);
        row.enforced = enforced;
    }
}

// 0 where nothing bounds the sum.
std::uint32_t GuardRows::follow_total(const ShareMember& tenant, Scope scope) {
    const Key key{tenant.key, total_device, scope};
    guard_row wanted{};
    const auto figures = tenant.limits->share_figures(total_device);
    store_limits(wanted, [&](Resource resource) {
        if (tenant.limits->mode() == Mode::off) return unlimited;
        return scope == Scope::tenant ? figures[index(resource)].limit : tenant.limits->limit(scope, total_device, resource);
    });
    const bool paced = scope == Scope::tenant && tenant.limits->mode() != Mode::off;
    const auto rate_of = [&](Resource rate) { return paced ? figures[index(rate)].limit : unlimited; };
    const auto burst_of = [&](Resource rate) { return tenant.limits->soft(total_device, rate); };
    store_paces(wanted, rate_of, burst_of);
    if (!bounds_anything(wanted) && !numbers_.contains(key)) return 0;
    const auto number = have(key, tenant.name);
    for (std::uint32_t place = 0; number != 0 && place < guard_resources; ++place)
        store(rows_[number].limit[place], wanted.limit[place]);
    if (number != 0) store_paces(rows_[number], rate_of, burst_of);
    return number != 0 && bounds_anything(wanted) ? number : 0;
}

// In a ring, so that the sum over devices can be had from any of them: also of devices whose name is gone, while something counts.
void GuardRows::link(const std::string& tenant, const std::vector<std::string>& devices) {
    std::uint32_t first = 0, last = 0;
    for (auto at = tenants_.lower_bound(Place{tenant, {}}); at != tenants_.end() && at->first.first == tenant; ++at) {
        const bool there = std::find(devices.begin(), devices.end(), at->first.second) != devices.end();
        if (!there && counts_nothing(rows_[at->second])) continue;
        if (first == 0) first = at->second;
        if (last != 0) rows_[last].next = at->second;
        last = at->second;
    }
    if (last != 0) rows_[last].next = first;
}

// Processes that are there have the limits of their tenant's processes.
void GuardRows::refresh_processes() {
    for (std::uint32_t number = 1; number < process_rows; ++number) {
        auto& row = rows_[number];
        const auto process_class = load_relaxed(row.process_class);
        if (load_relaxed(row.process) == 0 || process_class < process_rows || process_class >= guard_rows) continue;
        const auto& of = rows_[process_class];
        for (std::uint32_t place = 0; place < guard_resources; ++place)
            if (row.limit[place] != of.limit[place]) store(row.limit[place], of.limit[place]);
        row.enforced = of.enforced;
        row.total = of.total;
    }
}

// Rows of tenants and devices that are gone, once nothing counts in them and no process takes its limits from them. One that
// is free here is not taken before the next update, when nobody is known by it any more.
void GuardRows::drop_unused(const Members& tenants, const std::vector<std::string>& devices) {
    std::set<std::string_view> there{node_tenant};
    for (const auto& tenant : tenants) there.insert(tenant.key);
    const auto in_use = referred_to();
    const auto before = numbers_.size();
    for (auto entry = numbers_.begin(); entry != numbers_.end();) {
        const auto& [tenant, device, scope] = entry->first;
        const auto number = entry->second;
        const bool wanted = there.contains(tenant) &&
                            (device == total_device || std::find(devices.begin(), devices.end(), device) != devices.end());
        const auto processes = numbers_.find({tenant, device, Scope::process});
        const bool has_processes = processes != numbers_.end() && in_use.contains(processes->second);
        if (wanted || has_processes || in_use.contains(number) || !counts_nothing(rows_[number])) {
            ++entry;
            continue;
        }
        if (scope == Scope::tenant) tenants_.erase({tenant, device});
        names_.erase(guard_name_of(tenant, device, scope));
        meanings_.erase(number);
        free_.push_back(number);
        entry = numbers_.erase(entry);
    }
    if (numbers_.size() != before) link_rest(there);
}

// By processes that are there, and by rows that count something.
std::set<std::uint32_t> GuardRows::referred_to() const {
    std::set<std::uint32_t> numbers;
    for (std::uint32_t number = 1; number < process_rows; ++number)
        if (load_relaxed(rows_[number].process) != 0) numbers.insert({load_relaxed(rows_[number].process_class), load_relaxed(rows_[number].total)});
    for (const auto& [key, number] : numbers_)
        if (!counts_nothing(rows_[number])) numbers.insert(rows_[number].total);
    return numbers;
}

// The rings of tenants that are gone.
void GuardRows::link_rest(const std::set<std::string_view>& there) {
    std::map<std::string, std::vector<std::string>> devices;
    for (const auto& [place, number] : tenants_)
        if (!there.contains(place.first)) devices[place.first].push_back(place.second);
    for (const auto& [tenant, its] : devices) link(tenant, its);
}

std::optional<guard_stamp> GuardRows::waiting_stamp(std::string_view device) const {
    if (const auto of_default = stamp(default_tenant, device)) return of_default;
    const auto found = tenants_.find(Place{std::string(node_tenant), std::string(device)});
    if (found == tenants_.end()) return std::nullopt;
    guard_stamp stamp{};
    stamp.count = 1;
    stamp.rows[0] = found->second;
    stamp.deny_errno = EDQUOT;
    return stamp;
}

void GuardRows::add_uses(std::string_view tenant, std::vector<CountedUse>& uses) const {
    for (auto at = tenants_.lower_bound(Place{std::string(tenant), {}}); at != tenants_.end() && at->first.first == tenant; ++at) {
        auto& use = uses.emplace_back(CountedUse{UverbsDevices::now().name(at->first.second), {}, {}});
        for (std::uint32_t place = 0; place < guard_resources; ++place) {
            const auto resource = guarded_resource(place);
            if (!resource) continue;
            use.used[index(*resource)] = load_relaxed(rows_[at->second].used[place]);
            use.whole[index(*resource)] = counts_all_of(*resource);
        }
    }
}

// On all devices.
std::uint64_t GuardRows::used_by(std::uint32_t row, std::uint32_t place) const noexcept {
    if (row < process_rows) return used_by_process(rows_[row], place);
    std::uint64_t sum = load_relaxed(rows_[row].used[place]);
    auto number = rows_[row].next;
    for (int device = 1; device < most_guarded_devices && number != row; ++device) {
        sum += load_relaxed(rows_[number].used[place]);
        number = rows_[number].next;
    }
    return sum;
}

std::uint64_t GuardRows::used_by_process(const guard_row& own, std::uint32_t place) const noexcept {
    std::uint64_t sum = 0;
    const auto pid = load_relaxed(own.pid);
    const auto since = load_relaxed(own.since);
    for (std::uint32_t number = 1; number < process_rows; ++number)
        if (load_relaxed(rows_[number].pid) == pid && load_relaxed(rows_[number].since) == since) sum += load_relaxed(rows_[number].used[place]);
    return sum;
}

bool GuardRows::is_exceeded(std::uint32_t number, const GuardAmounts& by) const noexcept {
    const auto& row = rows_[number];
    if (row.enforced == 0) return false;
    for (std::uint32_t place = 0; place < guard_resources; ++place) {
        if (by[place] == 0) continue;
        if (exceeds(load_relaxed(row.used[place]), row.limit[place])) return true;
        if (row.total != 0 && exceeds(used_by(number, place), rows_[row.total].limit[place])) return true;
    }
    return false;
}

std::optional<guard_stamp> GuardRows::stamp(std::string_view tenant, std::string_view device) const {
    const auto own = numbers_.find({std::string(tenant), std::string(device), Scope::process});
    const auto denies = denies_.find(tenant);
    guard_stamp stamp{};
    for (std::string above(tenant);; above = parent_of(above)) {
        const auto found = tenants_.find(Place{above, std::string(device)});
        if (found != tenants_.end() && stamp.count < guard_depth - 1) stamp.rows[stamp.count++] = found->second;
        else if (above == tenant) return std::nullopt;
        if (above == node_tenant) break;
    }
    stamp.process_class = own == numbers_.end() ? 0 : own->second;
    stamp.deny_errno = denies == denies_.end() ? EDQUOT : denies->second.with;
    stamp.exempt = denies != denies_.end() && denies->second.never;
    return stamp;
}

const GuardRows::Meaning* GuardRows::meaning(std::uint32_t row) const {
    if (row < process_rows) row = load_relaxed(rows_[row].process_class);
    const auto found = meanings_.find(row);
    return found == meanings_.end() ? nullptr : &found->second;
}

}  // namespace rdmaquota
