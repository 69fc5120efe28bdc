// The two rings of events. Every process may write and read them; nobody waits for it.
#include <algorithm>
#include <ctime>

#include <sched.h>

#include "shm/atomic.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/failpoint.hpp"

namespace rdmaquota {
namespace {

constexpr int most_looks = 8;

std::uint64_t now_ns() noexcept {
    timespec time{};
    clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

template <std::uint32_t slots>
void write(Event (&ring)[slots], std::uint64_t number, const Event& event) noexcept {
    auto& entry = ring[number % slots];
    const auto now = now_ns();
    store(entry.sequence, 2 * number + 1);
    failpoint("record");
    Event whole = event;
    whole.sequence = 2 * number + 1;
    whole.time_ns = now;
    whole.count = 1;
    whole.first_time_ns = 0;
    show(entry, whole);
    store(entry.sequence, 2 * number + 2);
}

bool alike(const Event& one, const Event& other) noexcept {
    return one.kind == other.kind && one.pid == other.pid && one.pid_namespace == other.pid_namespace && one.uid == other.uid && one.device == other.device &&
           one.resource == other.resource && one.scope == other.scope && one.reason == other.reason &&
           one.error == other.error;
}

template <std::uint32_t slots>
void read(const Event (&ring)[slots], std::uint64_t head, std::uint64_t& next, NumberedEvents& result) {
    const auto oldest = head > slots ? head - slots : 0;
    for (auto number = std::max(next, oldest); number < head; ++number) {
        const auto& entry = ring[number % slots];
        // A repeat is written in an instant. What stays half-written has lost its writer.
        for (int look = 0; look < most_looks && load(entry.sequence) == 2 * number + 1; ++look) sched_yield();
        if (load(entry.sequence) != 2 * number + 2) continue;
        Event copy;
        look(copy, entry);
        if (load(entry.sequence) != 2 * number + 2) continue;
        result.emplace_back(number, copy);
        next = number + 1;
    }
}

}  // namespace

std::uint64_t Ledger::record(const Event& event) noexcept {
    const bool repair = is_repair(event.kind);
    const auto number = add(repair ? data_->header.repair_head : data_->header.event_head, 1);
    repair ? write(data_->repairs, number, event) : write(data_->events, number, event);
    return number;
}

// Only one thread at a time counts on an event, by its sequence; another event that takes the place meanwhile keeps it.
bool Ledger::repeat(std::uint64_t number, const Event& event) noexcept {
    auto& entry = data_->events[number % event_slots];
    Event known;
    look(known, entry);
    const auto whole = 2 * number + 2, writing = whole - 1;
    auto sequence = whole;
    if (!alike(known, event) || !compare_exchange(entry.sequence, sequence, writing)) return false;
    failpoint("record");
    if (load(entry.first_time_ns) == 0) store(entry.first_time_ns, load(entry.time_ns));
    store(entry.count, std::max<std::uint64_t>(load(entry.count), 1) + 1);
    store(entry.used, event.used);
    store(entry.limit, event.limit);
    store(entry.requested, event.requested);
    store(entry.time_ns, now_ns());
    sequence = writing;
    return compare_exchange(entry.sequence, sequence, whole);
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
