#include "tools/rdmaquotad/bypass/bypass_detector.hpp"

#include <algorithm>
#include <set>
#include <tuple>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

constexpr unsigned looks_for_gate = 4;
constexpr std::size_t most_sides = 16384, most_findings = 32;  // at a look
constexpr std::uint32_t not_a_pid = 0x80000000;

// What one excess weighs against another: objects, and pages of memory.
std::uint64_t weight(Resource resource, std::uint64_t amount) {
    return info(resource).unit == Unit::bytes ? (amount + 4095) / 4096 : amount;
}

}  // namespace

// A process may use contexts that another opened, and that one a third's: all have the same representative.
class BypassDetector::Groups {
public:
    explicit Groups(const std::vector<KernelUse>& uses) {
        for (const auto& use : uses) join(use.pid, use.opener);
    }
    void join(std::uint32_t one, std::uint32_t other) {
        const auto a = of(one), b = of(other);
        parent_[std::max(a, b)] = std::min(a, b);
    }
    std::uint32_t of(std::uint32_t pid) {
        const auto found = parent_.try_emplace(pid, pid).first->second;
        return found == pid ? pid : parent_[pid] = of(found);
    }
    std::map<std::uint32_t, std::uint32_t> all() {
        std::map<std::uint32_t, std::uint32_t> groups;
        for (const auto& [pid, parent] : parent_) groups[pid] = parent;
        for (auto& [pid, group] : groups) group = of(pid);
        return groups;
    }

private:
    std::map<std::uint32_t, std::uint32_t> parent_;
};

// Kernel and ledger of a group of processes on one device, in the name of one of them.
struct BypassDetector::Side {
    std::uint32_t pid = 0;         // the one with most objects and no slot of its own, if there is such a one
    std::uint64_t pid_objects = 0;
    bool pid_has_slot = true;
    std::optional<Identity> identity;
    bool partial = false;
    bool stale = false;
    bool slotless = true;  // none of its processes has one
    std::uint64_t oldest = UINT64_MAX;  // start time
    std::uint64_t driver_objects = 0;
    std::uint64_t activity = 0, openings = 0;
    ResourceCounts kernel{}, ledger{};
};

namespace {

// Objects of a driver's own kinds (DEVX) may have been charged as what they stand for, or not at all, such as
// libmlx5's doorbell pages: between these two figures the ledger is right.
std::pair<std::uint64_t, std::uint64_t> right_amounts(Resource resource, std::uint64_t kernel,
                                                      std::uint64_t driver_objects) {
    if (driver_objects == 0) return {kernel, kernel};
    if (resource == Resource::hca_object) return {more(kernel, driver_objects), kernel};
    if (resource == Resource::hca_handle) return {kernel, kernel};
    return {kernel, info(resource).unit == Unit::bytes ? max_amount : kernel + driver_objects};
}

}  // namespace

// Whose slot is whose: of the process that it names, or, where none that uses a device is that, of those who keep it.
// The second are compared together.
BypassDetector::Slots BypassDetector::assign(const Observation& observation, Groups& groups) {
    std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> by_name;
    for (const auto& [pid, group] : groups.all())
        if (const auto& identity = names_.of(pid)) by_name[{identity->pid, identity->start_time}] = pid;
    std::map<std::uint32_t, std::uint64_t> openings;
    for (const auto& use : observation.uses)
        openings[use.pid] += use.created[index(Resource::hca_handle)] + use.destroyed[index(Resource::hca_handle)];
    std::map<std::uint32_t, std::vector<std::uint32_t>> keepers;
    for (const auto& [pid, count] : openings)
        for (const auto slot : holders_.of(pid, count)) keepers[slot].push_back(pid);
    Slots slots;
    for (const auto& owner : observation.ledger.owners()) {
        auto& users = slots[owner.slot];
        const auto named = by_name.find({owner.identity.pid, owner.identity.start_time});
        if (named != by_name.end()) users = {named->second};
        else users = keepers[owner.slot];
        for (const auto pid : users) groups.join(pid, users.front());
    }
    return slots;
}

BypassDetector::Sides BypassDetector::read(const Observation& observation) {
    Groups groups(observation.uses);
    holders_.follow(observation.ledger.path(), observation.ledger_inode);
    const auto slots = assign(observation, groups);
    std::set<std::uint32_t> charged;
    for (const auto& [slot, users] : slots) charged.insert(users.begin(), users.end());
    Sides sides;
    for (const auto& use : observation.uses)
        if (const bool has_slot = charged.contains(use.pid); has_slot || observation.everyone)
            add_kernel(sides[{groups.of(use.pid), use.device}], use, has_slot);
    std::set<std::uint32_t> pids;
    for (const auto& [pid, group] : groups.all()) pids.insert(pid);
    names_.keep_only(pids);
    holders_.keep_only(pids);
    add_ledger(sides, slots, groups, observation);
    return sides;
}

void BypassDetector::add_kernel(Side& side, const KernelUse& use, bool has_slot) {
    const auto& identity = names_.of(use.pid);
    side.slotless &= !has_slot;
    side.openings += use.created[index(Resource::hca_handle)] + use.destroyed[index(Resource::hca_handle)];
    const auto objects = use.live[index(Resource::hca_object)];
    if (side.pid == 0 || std::tuple(!has_slot, objects) > std::tuple(!side.pid_has_slot, side.pid_objects)) {
        side.pid = use.pid;
        side.identity = identity;
        side.pid_objects = objects;
        side.pid_has_slot = has_slot;
    }
    side.partial |= use.partial;
    side.stale |= use.stale;
    side.oldest = std::min(side.oldest, identity ? identity->start_time : 0);
    for (std::size_t r = 0; r < resource_count; ++r) {
        side.kernel[r] += use.live[r];
        side.activity += use.created[r] + use.destroyed[r];
    }
    side.driver_objects += use.driver_objects;
}

// Owners of whom the kernel knows nothing stand for themselves; of them and of devices, anyone may invent any number.
void BypassDetector::add_ledger(Sides& sides, const Slots& slots, Groups& groups, const Observation& observation) {
    const auto devices = observation.ledger.devices();
    for (const auto& owner : observation.ledger.owners()) {
        const auto users = slots.find(owner.slot);
        if (users == slots.end()) continue;
        const auto group = users->second.empty() ? not_a_pid | owner.slot : groups.of(users->second.front());
        for (const auto& [device, device_name] : devices) {
            if (!observation.devices.contains(device_name)) continue;
            for (const auto& row : resource_table) {
                const auto used = observation.ledger.usage(owner.slot, device, row.id);
                if (used == 0) continue;
                const ProcessDevice place{group, device_name};
                if (!sides.contains(place) && sides.size() >= most_sides) continue;
                auto& side = sides[place];
                if (side.pid == 0) {
                    side.pid = owner.identity.pid;
                    side.identity = owner.identity;
                }
                side.ledger[index(row.id)] += used;
                side.oldest = std::min(side.oldest, owner.identity.start_time);
            }
        }
    }
}

void BypassDetector::compare(const ProcessDevice& place, const Side& side, const Observation& observation) {
    auto& watched = watched_[place];
    if (side.stale) {  // nothing new is known
        watched.seen = true;
        return;
    }
    watched.looks.begin(watched.in_kernel == side.kernel && watched.in_ledger == side.ledger &&
                        watched.activity == side.activity);
    const bool slotless = side.slotless && side.ledger[index(Resource::hca_handle)] == 0;
    const bool was_slotless = std::exchange(watched.slotless, slotless);
    const auto was_openings = std::exchange(watched.openings, side.openings);
    watched.seen = true;
    watched.partial = side.partial;
    watched.activity = side.activity;
    watched.difference.pid = side.pid;
    watched.difference.comm = side.identity ? side.identity->comm : "";
    watched.difference.device = place.second;
    watched.in_kernel = side.kernel;
    watched.in_ledger = side.ledger;
    for (const auto& row : resource_table) {
        const auto i = index(row.id);
        const bool known = observation.watch.knows(row.id) &&
                           (!side.partial || (in_netlink(row.id) && row.id != Resource::mr_bytes));
        const auto [least, most] = right_amounts(row.id, side.kernel[i], side.driver_objects);
        // At least what is listed is there.
        const bool least_known = known || (side.partial && row.id == Resource::hca_object);
        const bool most_known = known && side.oldest >= observation.watch.since();
        watched.looks.set(row.id, {least_known ? least : 0, most_known ? most : UINT64_MAX, side.ledger[i]});
    }
    const bool open = observation.watch.attached() && side.kernel[index(Resource::hca_handle)] > 0;
    if (open && slotless && was_slotless && was_openings == side.openings) watched.looks.confirm();
}

Difference BypassDetector::difference(const Watched& watched, bool bypass) const {
    auto difference = watched.difference;
    difference.cgroup = cgroup_of(difference.pid);
    for (const auto& row : resource_table) {
        const auto lasting = bypass ? watched.looks.bypass(row.id) : watched.looks.leak(row.id);
        if (lasting != 0)
            difference.amounts.push_back({row.id, watched.in_kernel[index(row.id)], watched.in_ledger[index(row.id)]});
    }
    return difference;
}

void BypassDetector::judge(Watched& watched, std::vector<Finding>& found) {
    std::uint64_t bypassed = 0;
    bool leaked = false;
    for (const auto& row : resource_table) {
        // Kind after kind is listed, each at another moment, so that their sum may be more than there ever was.
        if (!watched.partial || row.id != Resource::hca_object)
            bypassed += weight(row.id, watched.looks.bypass(row.id));
        leaked |= watched.looks.leak(row.id) != 0;
    }
    if (bypassed != 0 && (watched.told == 0 || bypassed >= 2 * watched.told)) {
        found.push_back({Finding::Kind::bypass, difference(watched, true)});
        watched.told = bypassed;
    }
    if (bypassed == 0 && watched.told != 0) {
        found.push_back({Finding::Kind::bypass_ended, watched.difference});
        watched.told = 0;
    }
    if (leaked != watched.leak_told)
        found.push_back(leaked ? Finding{Finding::Kind::leak, difference(watched, false)}
                               : Finding{Finding::Kind::leak_ended, watched.difference});
    watched.leak_told = leaked;
}

// A gate that is too high for several looks was left so by a death in mid-operation, or is in use all the time;
// reconciling tells which.
void BypassDetector::correct_gates(Ledger& ledger) {
    for (const auto& [device, device_name] : ledger.devices())
        for (const auto& row : resource_table) {
            auto& looks = loose_[{device, row.id}];
            const bool loose = ledger.gate(device, row.id) != ledger.tenant_usage(device, row.id);
            looks = loose ? looks + 1 : 0;
            if (looks < looks_for_gate) continue;
            if (ledger.reconcile(device, row.id) == Ledger::View::corrected) ++corrected_;
            looks = 0;
        }
}

std::vector<Finding> BypassDetector::look(const Observation& observation) {
    std::vector<Finding> found;
    correct_gates(observation.ledger);
    const auto sides = observation.policy.mode() == Mode::off ? Sides{} : read(observation);
    for (auto& [place, watched] : watched_) watched.seen = false;
    for (const auto& [place, side] : sides) compare(place, side, observation);
    for (auto& [place, watched] : watched_) {
        if (!watched.seen) watched.looks.begin(false);
        if (found.size() < most_findings) judge(watched, found);  // otherwise at the next look
    }
    std::erase_if(watched_, [](const auto& entry) {
        const auto& [place, watched] = entry;
        return !watched.seen && watched.told == 0 && !watched.leak_told;
    });
    return found;
}

std::vector<Difference> BypassDetector::bypasses() const {
    std::vector<Difference> now;
    for (const auto& [place, watched] : watched_)
        if (watched.told != 0) now.push_back(difference(watched, true));
    return now;
}

}  // namespace rdmaquota
