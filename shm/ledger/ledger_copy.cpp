#include "shm/ledger/ledger_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "shm/ledger/ledger_file.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

constexpr std::uint32_t slots_at_once = 64;

template <std::size_t N>
std::string text_of(const char (&field)[N]) {
    return {field, strnlen(field, N)};
}

// Copies `count` of T from `offset` within the ledger's data. What lies behind the end of the file reads as zeroes.
template <class T>
void copy(int fd, std::size_t offset, T* into, std::size_t count) {
    const auto bytes = count * sizeof(T);
    std::size_t done = 0;
    while (done < bytes) {
        const auto at = static_cast<off_t>(ledger_offset + offset + done);
        const auto got = pread(fd, reinterpret_cast<char*>(into) + done, bytes - done, at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    std::memset(static_cast<void*>(reinterpret_cast<char*>(into) + done), 0, bytes - done);
}

// A regular file of tmpfs never makes the reader wait, and anything else is not opened.
int open_ledger(const std::string& path, struct stat& status) {
    const int fd = open(data_path(path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return fd;
    if (fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) return fd;
    close(fd);
    errno = EINVAL;
    return -1;
}

std::uint64_t bounded(std::uint64_t amount) { return std::min(amount, max_amount); }

template <class From>
void add(const From& from, PastActivity& sum) {
    sum.cq_events += from.cq_events;
    for (std::size_t state = 0; state < qp_states; ++state) {
        sum.qp_to[state] += from.qp_to[state];
        sum.qp_failed[state] += from.qp_failed[state];
    }
}

}  // namespace

LedgerCopy::LedgerCopy() : head_(std::make_unique<Head>()) { clear(); }

void LedgerCopy::clear() {
    inode_ = 0;
    slots_used_ = 0;
    std::memset(static_cast<void*>(head_.get()), 0, sizeof(Head));
    sums_.assign(device_slots * resource_count, 0);
    past_activity_.assign(device_slots, {});
    activity_.clear();
}

Result<void> LedgerCopy::read(const std::string& path, Parts parts) {
    clear();
    struct stat status {};
    const int fd = open_ledger(path, status);
    if (fd < 0) return Error{fmt::format("cannot read the ledger {}: {}", path, std::strerror(errno))};
    inode_ = status.st_ino;
    copy(fd, 0, head_.get(), 1);
    slots_used_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(head_->header.slots_used, owner_slots));
    read_slots(fd, parts);
    close(fd);
    add_up();
    return {};
}

// Chunks without a live slot are left out.
void LedgerCopy::read_slots(int fd, Parts parts) {
    const bool with_activity = parts == Parts::usage_and_activity;
    states_.resize(slots_used_);
    slots_.resize(slots_used_);
    copy(fd, offsetof(LedgerData, states), states_.data(), slots_used_);
    if (with_activity) {
        activity_.resize(slots_used_);
        copy(fd, offsetof(LedgerData, past_activity), past_activity_.data(), device_slots);
    }
    for (std::uint32_t first = 0; first < slots_used_; first += slots_at_once) {
        const auto count = std::min(slots_at_once, slots_used_ - first);
        const auto states = states_.begin() + first;
        if (std::find(states, states + count, SlotState::live) == states + count) continue;
        copy(fd, offsetof(LedgerData, slots) + first * sizeof(Slot), &slots_[first], count);
        if (with_activity)
            copy(fd, offsetof(LedgerData, activity) + first * sizeof(ActivityOfSlot), &activity_[first], count);
    }
}

void LedgerCopy::add_up() {
    const auto devices = devices_used();
    for (std::uint32_t slot = 0; slot < slots_used_; ++slot) {
        if (!live(slot)) continue;
        for (std::uint32_t device = 0; device < devices; ++device)
            for (std::size_t r = 0; r < resource_count; ++r) {
                auto& sum = sums_[device * resource_count + r];
                sum = bounded(sum + bounded(slots_[slot].usage[device][r]));
            }
    }
}

std::uint32_t LedgerCopy::devices_used() const noexcept {
    std::uint32_t count = 0;
    while (count < device_slots && head_->devices[count].key != 0) ++count;
    return count;
}

std::vector<std::pair<std::uint32_t, std::string>> LedgerCopy::devices() const {
    std::vector<std::pair<std::uint32_t, std::string>> result;
    for (std::uint32_t i = 0; i < devices_used(); ++i) result.emplace_back(i, text_of(head_->devices[i].name.text));
    return result;
}

std::vector<OwnerView> LedgerCopy::owners() const {
    std::vector<OwnerView> result;
    for (std::uint32_t i = 0; i < slots_used_; ++i) {
        if (!live(i)) continue;
        const auto& owner = slots_[i].owner;
        result.push_back({i, {owner.pid, owner.uid, owner.start_time, text_of(owner.comm)},
                          (slots_[i].ops & ops_in_flight_mask) != 0});
    }
    return result;
}

std::uint64_t LedgerCopy::usage(std::uint32_t slot, std::uint32_t device, Resource resource) const noexcept {
    return live(slot) && device < device_slots ? bounded(slots_[slot].usage[device][index(resource)]) : 0;
}

std::uint64_t LedgerCopy::tenant_usage(std::uint32_t device, Resource resource) const noexcept {
    return device < device_slots ? sums_[device * resource_count + index(resource)] : 0;
}

std::uint64_t LedgerCopy::gate(std::uint32_t device, Resource resource) const noexcept {
    return device < device_slots ? head_->gates[device][index(resource)] & gate_amount_mask : 0;
}

std::uint64_t LedgerCopy::peak(std::uint32_t device, Resource resource) const noexcept {
    return device < device_slots ? head_->peaks[device][index(resource)] : 0;
}

PastActivity LedgerCopy::activity(std::uint32_t slot, std::uint32_t device) const noexcept {
    PastActivity sum{};
    if (live(slot) && slot < activity_.size() && device < device_slots) add(activity_[slot].of[device], sum);
    return sum;
}

PastActivity LedgerCopy::tenant_activity(std::uint32_t device) const noexcept {
    PastActivity sum{};
    if (device >= device_slots) return sum;
    add(past_activity_[device], sum);
    for (std::uint32_t slot = 0; slot < activity_.size(); ++slot)
        if (live(slot)) add(activity_[slot].of[device], sum);
    return sum;
}

std::vector<std::pair<std::uint64_t, Event>> read_events(const std::string& path, std::uint64_t since) {
    std::vector<std::pair<std::uint64_t, Event>> result;
    struct stat status {};
    const int fd = open_ledger(path, status);
    if (fd < 0) return result;
    std::uint64_t head = 0;
    std::vector<Event> ring(event_slots);
    copy(fd, offsetof(LedgerData, header) + offsetof(LedgerHeader, event_head), &head, 1);
    copy(fd, offsetof(LedgerData, events), ring.data(), ring.size());
    close(fd);
    const auto oldest = head > event_slots ? head - event_slots : 0;
    for (auto number = std::max(since, oldest); number < head; ++number)  // a half-written one is left out
        if (const auto& event = ring[number % event_slots]; event.sequence == 2 * number + 2)
            result.emplace_back(number, event);
    return result;
}

}  // namespace rdmaquota
