#include "tools/rdmaquotad/bypass/slot_holders.hpp"

#include <utility>

#include "tools/common/process/maps_reader.hpp"
#include "tools/rdmaquotad/bypass/process_info.hpp"

namespace rdmaquota {
namespace {

constexpr auto trusted_for = std::chrono::seconds(5);
constexpr auto time_for_all = std::chrono::milliseconds(100);  // at a look
constexpr auto cheap = std::chrono::milliseconds(2);
constexpr auto long_wait = std::chrono::milliseconds(100);
constexpr auto unasked_for = std::chrono::seconds(5);  // where nothing is known of a process's mappings
constexpr int rest = 20;  // times as long as it took

}  // namespace

void SlotHolders::follow(const std::map<std::uint32_t, std::string>& ledgers) {
    std::set<std::uint32_t> fresh;
    for (const auto& [number, path] : ledgers) {
        fresh.insert(number);
        if (followed_.contains(number)) continue;
        ++followings_;
        add_lock_files(lock_files_, path, number);
    }
    if (fresh == followed_) return;
    followed_ = std::move(fresh);
    std::erase_if(lock_files_, [&](const auto& file) { return !followed_.contains(file.second); });
}

void SlotHolders::read(std::uint32_t pid, std::uint64_t openings, std::uint64_t claims) {
    auto& held = known_[pid];
    const auto begin = Clock::now();
    if (begin < held.due) return;
    const bool same = held.openings == openings && held.claims == claims && held.followings == followings_;
    if (same && begin - held.read < trusted_for) return;
    const auto maps = read_maps(proc_directory_with_memory(pid));
    if (!maps) {
        held.due = begin + unasked_for;
        return;
    }
    held.slots = slots_in_maps(maps->text, lock_files_);
    held.openings = openings;
    held.claims = claims;
    held.followings = followings_;
    held.read = Clock::now();
    // A busy node makes everything wait a little, a process that locks its mappings long.
    const auto waited = held.read - begin;
    const auto took = waited > long_wait ? waited : std::chrono::duration_cast<Clock::duration>(maps->cost);
    held.due = took > cheap ? held.read + rest * took : held.read;
}

SlotHolders::Held SlotHolders::find(const std::map<std::uint32_t, std::uint64_t>& openings, std::uint64_t claims) {
    std::erase_if(known_, [&](const auto& entry) { return !openings.contains(entry.first); });
    const auto end = Clock::now() + time_for_all;
    auto next = openings.lower_bound(next_);
    for (auto left = openings.size(); left > 0 && Clock::now() < end; --left) {
        if (next == openings.end()) next = openings.begin();
        read(next->first, next->second, claims);
        ++next;
    }
    next_ = next == openings.end() ? 0 : next->first;
    unread_.clear();
    for (const auto& [pid, count] : openings)
        if (const auto& known = known_[pid]; known.slots.empty() && known.openings != count) unread_.insert(pid);
    Held held;
    for (const auto& [pid, known] : known_)
        for (const auto& slot : known.slots)
            if (followed_.contains(slot.ledger)) held[pid].push_back(slot);
    return held;
}

std::set<std::uint32_t> SlotHolders::ledgers_of(std::uint32_t pid) const {
    std::set<std::uint32_t> ledgers;
    const auto known = known_.find(pid);
    if (known != known_.end())
        for (const auto& slot : known->second.slots) ledgers.insert(slot.ledger);
    return ledgers;
}

}  // namespace rdmaquota
