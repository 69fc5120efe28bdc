#include "tools/rdmaquotad/kernel/kernel_tables.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <map>
#include <optional>
#include <utility>

#include <bpf/libbpf.h>

namespace rdmaquota {

bool has_ended(u32 pid) { return kill(static_cast<pid_t>(pid), 0) != 0 && errno == ESRCH; }

namespace {

bool holds_nothing(const kernel_use& use) {
    return std::equal(std::begin(use.created), std::end(use.created), std::begin(use.destroyed));
}

// A process that used another's descriptor, holds nothing and is gone. The entry is read again once it cannot change.
bool is_over(const bpf_map* guests, const guest_key& key, kernel_use use) {
    return holds_nothing(use) && has_ended(use.pid) &&
           bpf_map__lookup_elem(guests, &key, sizeof key, &use, sizeof use, 0) == 0 && holds_nothing(use);
}

struct Opener {
    bool whole, reregistered;
};

// An opener's entry, which may change meanwhile: what was destroyed is read before what was created, so that it is not
// more. Nothing, when the file was closed.
std::optional<kernel_use> copy_opener(const kernel_use& entry) {
    const auto now = [](const u64& word) { return __atomic_load_n(&word, __ATOMIC_ACQUIRE); };
    if (now(entry.file) == 0) return std::nullopt;
    const auto id = now(entry.id);
    auto copy = entry;
    for (unsigned kind = 0; kind < kind_count; ++kind) copy.destroyed[kind] = now(entry.destroyed[kind]);
    for (unsigned kind = 0; kind < kind_count; ++kind) copy.created[kind] = now(entry.created[kind]);
    if (now(entry.file) == 0 || now(entry.id) != id) return std::nullopt;
    copy.id = id;
    return copy;
}

// Reads a whole map, from which nobody deletes meanwhile, so that no walk starts over. One entry at a time: while many are read
// at once, the kernel skips the kprobes of whoever preempts this thread.
void read_map(const bpf_map* map, std::vector<std::pair<guest_key, kernel_use>>& found) {
    guest_key key{};
    kernel_use use{};
    for (const guest_key* last = nullptr; bpf_map__get_next_key(map, last, &key, sizeof key) == 0; last = &key)
        if (bpf_map__lookup_elem(map, &key, sizeof key, &use, sizeof use, 0) == 0 && use.pid != 0) found.emplace_back(key, use);
}

}  // namespace

std::vector<KernelEntry> KernelTables::read() {
    std::vector<std::pair<guest_key, kernel_use>> guests;
    // The guests first: the file of one whose opener is not found afterwards is closed.
    read_map(guests_, guests);
    std::vector<KernelEntry> entries;
    std::map<u64, Opener> openers;
    for (u32 i = 0; i < opener_slots; ++i) {
        const auto use = copy_opener(openers_[i]);
        if (!use) continue;
        const auto& opener = openers[use->id] = {use->whole != 0, use->reregistered != 0};
        if (use->pid == 0) continue;
        devices_.insert(use->uverbs);
        entries.push_back({*use, true, opener.whole, opener.reregistered});
    }
    for (const auto& [key, use] : guests) {
        const auto opener = openers.find(key.opener);
        const bool past = key.opener == use.uverbs, open = opener != openers.end();
        if (!past && (!open || is_over(guests_, key, use))) bpf_map__delete_elem(guests_, &key, sizeof key, 0);
        entries.push_back({use, open, !open || opener->second.whole, open && opener->second.reregistered});
    }
    return entries;
}

std::vector<u32> KernelTables::holders() const {
    std::vector<u32> pids;
    u32 pid = 0;  // only `forget` deletes entries, so that no walk starts over
    for (const u32* last = nullptr; bpf_map__get_next_key(holders_, last, &pid, sizeof pid) == 0; last = &pid)
        pids.push_back(pid);
    return pids;
}

std::vector<kernel_use> KernelTables::forget(u32 pid) {
    std::vector<kernel_use> totals;
    bpf_map__delete_elem(holders_, &pid, sizeof pid, 0);
    for (const auto device : devices_) {
        const guest_key key{device, pid, 0};
        kernel_use total{};
        if (bpf_map__lookup_and_delete_elem(guests_, &key, sizeof key, &total, sizeof total, 0) == 0)
            totals.push_back(total);
    }
    return totals;
}

}  // namespace rdmaquota
