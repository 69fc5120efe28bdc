// The two rings of events. Every process may write and read them; nobody waits for it.
#include <algorithm>
#include <ctime>

#include "shm/atomic.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/failpoint.hpp"

namespace rdmaquota {
namespace {

template <std::uint32_t slots>
void write(Event (&ring)[slots], std::uint64_t number, const Event& event) noexcept {
    auto& entry = ring[number % slots];
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

template <std::uint32_t slots>
void read(const Event (&ring)[slots], std::uint64_t head, std::uint64_t& next, NumberedEvents& result) {
    const auto oldest = head > slots ? head - slots : 0;
    for (auto number = std::max(next, oldest); number < head; ++number) {
        const auto& entry = ring[number % slots];
        if (load(entry.sequence) != 2 * number + 2) continue;  // half-written, or its writer died
        Event copy;
        look(copy, entry);
        if (load(entry.sequence) != 2 * number + 2) continue;
        result.emplace_back(number, copy);
        next = number + 1;
    }
}

}  // namespace

void Ledger::record(const Event& event) noexcept {
    auto& header = data_->header;
    if (is_repair(event.kind)) write(data_->repairs, add(header.repair_head, 1), event);
    else write(data_->events, add(header.event_head, 1), event);
}

NumberedEvents Ledger::events(EventCursor& cursor) const {
    NumberedEvents result;
    const auto heads = event_cursor();
    read(data_->events, heads.denials, cursor.denials, result);
    read(data_->repairs, heads.repairs, cursor.repairs, result);
    sort_by_time(result);
    return result;
}

NumberedEvents Ledger::events() const {
    EventCursor all;
    return events(all);
}

EventCursor Ledger::event_cursor() const noexcept {
    return {load(data_->header.event_head), load(data_->header.repair_head)};
}

void sort_by_time(NumberedEvents& events) {
    std::stable_sort(events.begin(), events.end(),
                     [](const auto& one, const auto& other) { return one.second.time_ns < other.second.time_ns; });
}

}  // namespace rdmaquota
