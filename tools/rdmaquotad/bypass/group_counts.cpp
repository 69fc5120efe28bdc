#include "tools/rdmaquotad/bypass/group_counts.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

namespace rdmaquota {
namespace {

constexpr std::uint32_t not_a_pid = 0x80000000;

std::uint64_t openings_of(const KernelUse& use) {
    return use.created[index(Resource::hca_handle)] + use.destroyed[index(Resource::hca_handle)];
}

// The processes that hold slots which are live by the ledgers' word.
std::map<LedgerSlot, std::vector<std::uint32_t>> find_keepers(const Observation& observation) {
    std::set<LedgerSlot> live;
    for (const auto& ledger : observation.ledgers)
        for (const auto& slot : ledger.slots) live.insert({ledger.number, slot.slot});
    std::map<LedgerSlot, std::vector<std::uint32_t>> keepers;
    for (const auto& [pid, slots] : observation.held)
        for (const auto& slot : slots)
            if (live.contains(slot)) keepers[slot].push_back(pid);
    return keepers;
}

// Processes that may have more in a ledger, or a slot there that it is not known to have, than was read.
std::set<std::uint32_t> find_unread(const Observation& observation) {
    auto unread = observation.unread;
    std::set<std::uint32_t> old;
    for (const auto& ledger : observation.ledgers)
        if (!ledger.fresh) old.insert(ledger.number);
    for (const auto& [pid, slots] : observation.held)
        for (const auto& slot : slots)
            if (old.contains(slot.ledger)) unread.insert(pid);
    return unread;
}

}  // namespace

std::map<std::uint32_t, std::uint64_t> openings_by_process(const std::vector<KernelUse>& uses) {
    std::map<std::uint32_t, std::uint64_t> openings;
    for (const auto& use : uses) openings[use.pid] += openings_of(use);
    return openings;
}

// Those that have objects, but neither a slot nor memory.
void GroupReader::find_ending(const Observation& observation, const Keepers& keepers) {
    std::set<std::uint32_t> with_slot;
    for (const auto& [slot, pids] : keepers) with_slot.insert(pids.begin(), pids.end());
    const auto before = std::exchange(ending_, {});
    for (const auto& use : observation.uses) {
        if (with_slot.contains(use.pid) || use.live == ResourceCounts{}) continue;
        if (!is_ending(use.pid)) continue;
        const auto known = before.find(use.pid);
        ending_[use.pid] = known == before.end() ? observation.at : known->second;
    }
}

void GroupReader::add_ending(const Observation& observation, Keepers& keepers) const {
    for (const auto& ledger : observation.ledgers)
        for (const auto& slot : ledger.slots)
            if (ending_.contains(slot.identity.pid))
                keepers[{ledger.number, slot.slot}].push_back(slot.identity.pid);
}

std::map<ProcessDevice, GroupCounts> GroupReader::read(const Observation& observation) {
    auto keepers = find_keepers(observation);
    find_ending(observation, keepers);
    add_ending(observation, keepers);
    ProcessGroups groups;
    for (const auto& use : observation.uses) groups.join(use.pid, use.opener);
    std::set<std::uint32_t> with_slot;
    for (const auto& [slot, pids] : keepers)
        for (const auto pid : pids) {
            groups.join(pid, pids.front());
            with_slot.insert(pid);
        }
    const auto unread = find_unread(observation);
    Counts counts;
    for (const auto& use : observation.uses)
        if (const bool has_slot = with_slot.contains(use.pid); has_slot || observation.everyone) {
            auto& of_group = counts[{groups.of(use.pid), use.device}];
            add_kernel(of_group, use, has_slot, observation.at);
            of_group.stale |= unread.contains(use.pid);
        }
    processes_.keep_only(groups.pids());
    add_slots(counts, observation, keepers, groups);
    leave_out(counts, observation);
    return counts;
}

void GroupReader::add_kernel(GroupCounts& counts, const KernelUse& use, bool has_slot,
                             std::chrono::steady_clock::time_point now) {
    const auto& process = processes_.of(use.pid);
    const auto objects = use.live[index(Resource::hca_object)];
    if (counts.pid == 0 || std::tuple(!has_slot, objects) > std::tuple(!counts.pid_has_slot, counts.pid_objects)) {
        counts.pid = use.pid;
        counts.comm = process ? process->comm : "";
        counts.pid_objects = objects;
        counts.pid_has_slot = has_slot;
    }
    counts.has_slot |= has_slot;
    counts.oldest = std::min(counts.oldest, process ? process->start_time : 0);
    counts.partial |= use.partial;
    counts.stale |= use.stale;
    counts.driver_objects += use.driver_objects;
    counts.openings += openings_of(use);
    const auto ending = ending_.find(use.pid);
    const bool will_go = ending != ending_.end() && now - ending->second < longest_end;
    for (std::size_t r = 0; r < resource_count; ++r) {
        counts.kernel[r] += use.live[r];
        if (will_go) counts.ending[r] += use.live[r];
        counts.activity += use.created[r] + use.destroyed[r];
    }
}

void GroupReader::add_slots(Counts& counts, const Observation& observation, const Keepers& keepers,
                            ProcessGroups& groups) {
    unknown_ = 0;
    uncharged_.clear();
    for (const auto& ledger : observation.ledgers) {
        const bool charges = observation.charges(ledger.tenant);
        for (const auto& slot : ledger.slots) {
            const auto found = keepers.find({ledger.number, slot.slot});
            const bool known = found != keepers.end();
            // One that stands for itself has the same name at each look, whatever other slots there are.
            const auto number = ledger.number * owner_slots + slot.slot;
            const auto group = known ? groups.of(found->second.front()) : not_a_pid | number;
            if (!charges) uncharged_.insert(group);
            if (known)  // a slot on a device without use says to which tenant the process belongs, too
                for (auto at = counts.lower_bound({group, ""}); at != counts.end() && at->first.first == group; ++at) {
                    if (at->second.tenant.empty()) at->second.tenant = ledger.tenant;
                    at->second.stale |= !ledger.fresh;
                }
            add_slot(counts, group, slot, ledger);
        }
    }
}

// A slot's own word about its owner's age can only keep a leak of that owner from being reported.
void GroupReader::add_slot(Counts& counts, std::uint32_t group, const SlotUse& slot, const ObservedLedger& ledger) {
    for (const auto& [device, used] : slot.devices) {
        auto found = counts.find({group, device});
        if (found == counts.end()) {
            if (++unknown_ > most_unknown) return;
            found = counts.try_emplace({group, device}).first;
            found->second.pid = slot.identity.pid;
            found->second.comm = slot.identity.comm;
            found->second.tenant = ledger.tenant;
            found->second.stale = !ledger.fresh;
        }
        found->second.oldest = std::min(found->second.oldest, slot.identity.start_time);
        for (std::size_t r = 0; r < resource_count; ++r) found->second.ledger[r] += used[r];
    }
}

void GroupReader::leave_out(Counts& counts, const Observation& observation) {
    for (auto& [group, of_group] : counts)
        if (of_group.tenant.empty()) of_group.tenant = observation.tenant_of(of_group.pid);
    std::erase_if(counts, [&](const auto& entry) {
        return uncharged_.contains(entry.first.first) || !observation.charges(entry.second.tenant);
    });
}

}  // namespace rdmaquota
