// Counts of what processes did. They decide nothing, so accesses are relaxed, and gates, operations and proofs ignore
// them.
#include <limits>

#include "shm/atomic.hpp"
#include "shm/ledger/ledger.hpp"

namespace rdmaquota {
namespace {

template <class Word>
void count_one(Word& word) noexcept {
    std::atomic_ref<Word> count(word);
    if (count.load(std::memory_order_relaxed) != std::numeric_limits<Word>::max())
        count.fetch_add(1, std::memory_order_relaxed);
}

template <class Word>
std::uint64_t peek(const Word& word) noexcept {
    return std::atomic_ref<Word>(const_cast<Word&>(word)).load(std::memory_order_relaxed);
}

// Calls visit(from, to) for each pair of counters that mean the same.
template <class From, class To, class Visit>
void for_each_count(From& from, To& to, Visit visit) noexcept {
    visit(from.cq_events, to.cq_events);
    for (std::size_t state = 0; state < qp_states; ++state) {
        visit(from.qp_to[state], to.qp_to[state]);
        visit(from.qp_failed[state], to.qp_failed[state]);
    }
}

constexpr auto add_count = [](const auto& from, std::uint64_t& to) { to += peek(from); };

}  // namespace

void Ledger::count_cq_event(const Owner& owner, std::uint32_t device) noexcept {
    count_one(data_->activity[device][owner.slot()].cq_events);
}

void Ledger::note_delay(std::uint32_t device, Resource rate, std::uint64_t ns) noexcept {
    add(data_->peaks[device][index(rate)], ns);
    add(data_->soft_since[device][index(rate)], 1);
}

Ledger::Delays Ledger::delays(std::uint32_t device, Resource rate) const noexcept {
    return {load(data_->soft_since[device][index(rate)]), load(data_->peaks[device][index(rate)])};
}

void Ledger::count_qp_change(const Owner& owner, std::uint32_t device, unsigned state, bool failed) noexcept {
    if (state >= qp_states) return;
    auto& activity = data_->activity[device][owner.slot()];
    count_one(failed ? activity.qp_failed[state] : activity.qp_to[state]);
}

// Takes the counts out before it adds them: a death in between loses counts, and none counts twice.
void Ledger::keep_activity(std::uint32_t slot) noexcept {
    const auto devices = devices_used();
    for (std::uint32_t device = 0; device < devices; ++device)
        for_each_count(data_->activity[device][slot], data_->past_activity[device],
                       [](auto& from, std::uint64_t& to) {
                           if (peek(from) != 0) add(to, std::atomic_ref(from).exchange(0));
                       });
}

PastActivity Ledger::activity(std::uint32_t slot, std::uint32_t device) const noexcept {
    PastActivity sum{};
    if (slot < owner_slots && device < device_slots) for_each_count(data_->activity[device][slot], sum, add_count);
    return sum;
}

PastActivity Ledger::tenant_activity(std::uint32_t device) const noexcept {
    PastActivity sum{};
    if (device >= device_slots) return sum;
    for_each_count(data_->past_activity[device], sum, add_count);
    for (std::uint32_t slot = 0; slot < slots_used(); ++slot)
        if (load(data_->states[slot]) == SlotState::live)
            for_each_count(data_->activity[device][slot], sum, add_count);
    return sum;
}

}  // namespace rdmaquota
