// Uncharges what the dead held, and finds what a death in mid-operation leaked.
#include <algorithm>
#include <bit>

#include <sched.h>
#include <unistd.h>

#include "shm/atomic.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/ledger/steps.hpp"
#include "shm/lock_file.hpp"
#include "shm/paths.hpp"
#include "shm/failpoint.hpp"

namespace rdmaquota {

std::uint32_t Ledger::slots_used() const noexcept {
    return static_cast<std::uint32_t>(std::min<std::uint64_t>(load(data_->header.slots_used), owner_slots));
}

std::uint32_t Ledger::devices_used() const noexcept {
    std::uint32_t count = 0;
    while (count < device_slots && load(data_->devices[count].key) != 0) ++count;
    return count;
}

unsigned Ledger::reap(std::uint64_t most_ns) noexcept {
    const auto groups = (slots_used() + owners_per_lock_file - 1) / owners_per_lock_file;
    if (groups == 0 || !in_place()) return 0;
    const auto first = load(data_->header.next_group), begin = monotonic_ns();
    unsigned freed = 0;
    for (std::uint32_t i = 0; i < groups; ++i) {
        freed += reap_group(static_cast<std::uint32_t>((first + i) % groups));
        if (monotonic_ns() - begin < most_ns) continue;
        add(data_->header.next_group, i + 1);
        break;
    }
    return freed;
}

// The owners of one lock file that are marked as living, a bit each.
std::uint64_t Ledger::live_in(std::uint32_t group) const noexcept {
    static_assert(owners_per_lock_file == 64);
    const auto first = group * owners_per_lock_file;
    const auto last = std::min(first + owners_per_lock_file, slots_used());
    std::uint64_t live = 0;
    for (auto slot = first; slot < last; ++slot)
        if (load(data_->states[slot]) == SlotState::live) live |= std::uint64_t{1} << (slot - first);
    return live;
}

// Those of `slots` in this lock file that no living process owns.
std::uint64_t Ledger::find_dead(const LockFile& file, std::uint32_t group, std::uint64_t slots) const noexcept {
    auto dead = slots;
    for (auto left = slots; left != 0; left &= left - 1) {
        const auto slot = group * owners_per_lock_file + static_cast<std::uint32_t>(std::countr_zero(left));
        if (file.holder(slot) == LockFile::Holder::owner && load(data_->states[slot]) == SlotState::live)
            dead &= ~(left & -left);
    }
    return dead;
}

unsigned Ledger::reap_slots(const LockFile& file, std::uint32_t group, std::uint64_t slots) noexcept {
    unsigned freed = 0;
    for (auto left = slots; left != 0; left &= left - 1)
        freed += reap_slot(file, group * owners_per_lock_file + static_cast<std::uint32_t>(std::countr_zero(left)), true);
    return freed;
}

unsigned Ledger::reap_group(std::uint32_t group) noexcept {
    const auto live = live_in(group);
    if (live == 0) return 0;
    const auto file = LockFile::open(lock_path(path_, group * owners_per_lock_file));
    return file ? reap_slots(*file, group, find_dead(*file, group, live)) : 0;
}

// Whether every process whose usage the snapshot counts was alive at that moment: its lock is held. A lock that is held
// now was held then, unless the slot was reaped and claimed in between, which raises `claims`. False also when a lock file
// cannot be opened. Reaps the dead that it finds.
bool Ledger::all_alive(const Snapshot& snapshot) noexcept {
    if (!in_place()) return false;
    bool alive = true;
    for (std::uint32_t group = 0; group * owners_per_lock_file < slots_used(); ++group) {
        const auto holders = snapshot.holders[group];
        if (holders == 0) continue;
        const auto file = LockFile::open(lock_path(path_, group * owners_per_lock_file));
        const auto dead = file ? find_dead(*file, group, holders) : holders;
        if (dead == 0) continue;
        alive = false;
        if (file) reap_slots(*file, group, dead);
    }
    return alive && load(data_->header.claims) == snapshot.claims;
}

// Empties a slot that no living process owns; with `report`, records an event. False when another process holds its
// lock or the slot is free already.
bool Ledger::reap_slot(const LockFile& file, std::uint32_t number, bool report) noexcept {
    if (!file.try_reap(number)) return false;
    failpoint("reap_lock");
    const bool live = load(data_->states[number]) == SlotState::live;
    if (live) {
        if (report) report_death(number);
        empty_slot(number);
    }
    file.unlock(number);
    failpoint("reap_unlock");
    return live;
}

void Ledger::report_death(std::uint32_t number) noexcept {
    SlotOwner owner;
    look(owner, data_->slots[number].owner);
    Event event{};
    event.kind = EventKind::reaped;
    event.device = device_slots;
    event.resource = no_resource;
    event.pid = owner.pid;
    event.uid = owner.uid;
    std::copy(std::begin(owner.comm), std::end(owner.comm), event.comm);
    event.used = slot_total(number, Resource::hca_object);
    add(data_->header.reaped, 1);
    if (event.used != 0) record(event);
}

// Call it with the slot's lock held. Ends the operations that were in flight when the owner died, so that the ops word
// comes to rest; it only grows.
void Ledger::empty_slot(std::uint32_t number) noexcept {
    auto& slot = data_->slots[number];
    add(slot.ops, ops_begin);
    failpoint("empty_begin");
    const auto devices = devices_used();
    for (std::uint32_t device = 0; device < devices; ++device)
        for (std::size_t r = 0; r < resource_count; ++r) {
            const auto amount = load(data_->usage[device][number][r]);
            if (amount == 0) continue;
            note_peak(cells(number, device), static_cast<Resource>(r));
            lower(cells(number, device), static_cast<Resource>(r), amount);
        }
    for (auto& word : slot.total_rates) store(word, std::uint64_t{0});
    for (std::uint32_t device = 0; device < devices; ++device)
        std::fill_n(&data_->usage[device][number][resource_count], rate_count, 0);
    keep_activity(number);
    store(slot.ops, (load(slot.ops) | ops_in_flight_mask) + 1);
    failpoint("empty_end");
    store(data_->states[number], SlotState::free);
    failpoint("empty_free");
}

// Which slots are taken, a bit each.
void Ledger::find_live(std::uint32_t slots, SlotSet& live) const noexcept {
    for (std::uint32_t i = 0; i < slots; ++i)
        if (load(data_->states[i]) == SlotState::live) live[i / 64] |= std::uint64_t{1} << i % 64;
}

// Adds up one device over the slots that are taken.
void Ledger::add_up(std::uint32_t device, Resource resource, Snapshot& snapshot) const noexcept {
    auto& sum = snapshot.used[device];
    for (std::uint32_t i = 0; i < owner_slots / 64; ++i)
        for (auto left = snapshot.live[i]; left != 0; left &= left - 1) {
            const auto bit = static_cast<std::uint32_t>(std::countr_zero(left));
            const auto used = std::min(load(data_->usage[device][i * 64 + bit][index(resource)]), max_amount);
            sum = std::min(sum + used, max_amount);
            if (used != 0) snapshot.holders[i] |= std::uint64_t{1} << bit;
        }
}

// observe: reads every slot's ops word, then the usage, then the ops words again. They only grow, so equal sums mean
// that no operation began or ended in between; with none in flight, sums and gates belong together.
bool Ledger::observe(Resource resource, Snapshot& snapshot) const noexcept {
    const auto devices = devices_used();
    const auto slots = slots_used();
    std::fill_n(snapshot.used, device_slots, 0);
    std::fill(std::begin(snapshot.holders), std::end(snapshot.holders), 0);
    snapshot.claims = load(data_->header.claims);
    std::uint64_t first_look = 0;
    std::uint64_t in_flight = 0;
    for (std::uint32_t i = 0; i < slots; ++i) {
        const auto ops = load(data_->slots[i].ops);
        first_look += ops;
        in_flight |= ops & ops_in_flight_mask;
    }
    failpoint("first_look");
    if (in_flight != 0) return false;
    std::fill(std::begin(snapshot.live), std::end(snapshot.live), 0);
    find_live(slots, snapshot.live);
    for (std::uint32_t d = 0; d < devices; ++d) add_up(d, resource, snapshot);
    for (std::uint32_t d = 0; d < device_slots; ++d) snapshot.gate[d] = load(data_->gates[d][index(resource)]);
    failpoint("read_gates");
    std::uint64_t second_look = 0;
    for (std::uint32_t i = 0; i < slots; ++i) second_look += load(data_->slots[i].ops);
    return second_look == first_look && slots_used() == slots && devices_used() == devices;
}

// While operations are in flight, asks newcomers to hold back and observes again.
bool Ledger::observe_among_others(Resource resource, Snapshot& snapshot) noexcept {
    if (observe(resource, snapshot)) return true;
    constexpr int looks = 16;
    std::uint64_t request = (std::uint64_t{static_cast<std::uint32_t>(getpid())} << 32) | 1;
    store(data_->header.pause, request);
    failpoint("pause");
    bool seen = false;
    for (int i = 0; i < looks && !seen; ++i) {
        sched_yield();
        seen = observe(resource, snapshot);
    }
    compare_exchange(data_->header.pause, request, std::uint64_t{0});
    failpoint("go_ahead");
    return seen;
}

// correct: lowers the gate by the leak that the snapshot shows. Charges after the snapshot do not matter, since a leak
// stays a leak; another correction does, and changes the tag.
bool Ledger::correct(std::uint32_t device, Resource resource, const Snapshot& snapshot) noexcept {
    const auto seen = snapshot.gate[device];
    const auto leak = ((seen & gate_amount_mask) - snapshot.used[device]) & gate_amount_mask;
    if (leak == 0) return false;
    auto& gate = data_->gates[device][index(resource)];
    const auto tag = seen >> gate_tag_shift;
    auto word = load(gate);
    do {
        if (word >> gate_tag_shift != tag) return false;
    } while (!compare_exchange(gate, word, (((word & gate_amount_mask) - leak) & gate_amount_mask) |
                                               ((tag + 1) << gate_tag_shift)));
    failpoint("correct");
    add(data_->header.reconciled, 1);

    Event event{};
    event.kind = EventKind::reconciled;
    event.device = device;
    event.resource = static_cast<std::uint32_t>(index(resource));
    event.used = snapshot.used[device];
    event.requested = leak;
    record(event);
    return true;
}

Ledger::View Ledger::reconcile(std::uint32_t device, Resource resource) noexcept {
    Snapshot snapshot;
    if (!observe_among_others(resource, snapshot)) return View::not_quiescent;
    return correct(device, resource, snapshot) ? View::corrected : View::exact;
}

}  // namespace rdmaquota
