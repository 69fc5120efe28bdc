#include "provider/charging/repeats.hpp"

#include <array>
#include <atomic>
#include <ctime>

#include <unistd.h>

namespace rdmaquota::provider {
namespace {

struct Entry {
    std::atomic<std::uint64_t> number{0};  // of the event, and 1; 0: none
    std::atomic<std::uint64_t> limit{0};
    std::atomic<std::uint64_t> said_s{0};
    std::atomic<std::uint32_t> pid{0};  // of the process that met it; a forked child begins anew
    std::atomic<std::uint32_t> kept_back{0};
};

std::array<Entry, 64> entries;

Entry& entry_of(std::uint64_t place, const Event& event) noexcept {
    auto key = place;
    for (const std::uint64_t part : {event.device, event.resource, event.scope, static_cast<std::uint32_t>(event.kind)})
        key = (key ^ part) * 0x9e3779b97f4a7c15;
    return entries[key >> 58];
}

}  // namespace

std::uint64_t monotonic_s() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec);
}

bool count_or_record(Ledger& ledger, std::atomic<std::uint64_t>& last, const Event& event) noexcept {
    const auto known = last.load();
    if (known != 0 && ledger.repeat(known - 1, event)) return true;
    last = ledger.record(event) + 1;
    return false;
}

Recorded record_or_repeat(Ledger& ledger, std::uint64_t place, const Event& event, std::uint64_t now_s) noexcept {
    auto& entry = entry_of(place, event);
    if (entry.pid.exchange(event.pid) != event.pid) entry.kept_back = 0;
    const bool repeated = count_or_record(ledger, entry.number, event);
    const bool same = entry.limit.exchange(event.limit) == event.limit && repeated;
    if (same && now_s - entry.said_s < quiet_s) {
        ++entry.kept_back;
        return {false, 0};
    }
    entry.said_s = now_s;
    return {true, entry.kept_back.exchange(0)};
}

std::uint32_t take_kept_back() noexcept {
    std::uint32_t sum = 0;
    const auto self = static_cast<std::uint32_t>(getpid());
    for (auto& entry : entries)
        if (entry.pid == self) sum += entry.kept_back.exchange(0);
    return sum;
}

}  // namespace rdmaquota::provider
