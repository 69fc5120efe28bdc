// The ring of events. Every process may write and read it; nobody waits for it.
#include <algorithm>
#include <ctime>

#include "shm/atomic.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/failpoint.hpp"

namespace rdmaquota {

void Ledger::record(const Event& event) noexcept {
    const auto number = add(data_->header.event_head, 1);
    auto& entry = data_->events[number % event_slots];
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    store(entry.sequence, 2 * number + 1);
    failpoint("record");
    Event whole = event;
    whole.sequence = 2 * number + 1;
    whole.time_ns = static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
    show(entry, whole);
    store(entry.sequence, 2 * number + 2);
}

std::vector<std::pair<std::uint64_t, Event>> Ledger::events(std::uint64_t since) const {
    const auto head = load(data_->header.event_head);
    const auto oldest = head > event_slots ? head - event_slots : 0;
    std::vector<std::pair<std::uint64_t, Event>> result;
    for (auto number = std::max(since, oldest); number < head; ++number) {
        const auto& entry = data_->events[number % event_slots];
        if (load(entry.sequence) != 2 * number + 2) continue;  // half-written, or its writer died
        Event copy;
        look(copy, entry);
        if (load(entry.sequence) == 2 * number + 2) result.emplace_back(number, copy);
    }
    return result;
}

std::uint64_t Ledger::event_head() const noexcept { return load(data_->header.event_head); }

}  // namespace rdmaquota
