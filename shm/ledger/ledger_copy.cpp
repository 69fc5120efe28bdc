#include "shm/ledger/ledger_copy.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/fixed_text.hpp"
#include "shm/ledger/ledger_file.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

constexpr std::uint32_t slots_at_once = 64;  // no fewer are left out

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
    slots_used_ = devices_used_ = 0;
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
    while (devices_used_ < device_slots && head_->devices[devices_used_].key != 0) ++devices_used_;
    read_slots(fd, parts);
    close(fd);
    add_up();
    return {};
}

// Calls visit(first, count) for slots that stand together.
template <class Visit>
void LedgerCopy::for_each_stretch(Visit visit) const {
    const auto empty_at = [this](std::uint32_t first) {
        const auto begin = states_.begin() + first;
        const auto end = begin + std::min(slots_at_once, slots_used_ - first);
        return std::find(begin, end, SlotState::live) == end;
    };
    for (std::uint32_t first = 0, end = 0; first < slots_used_; first = end) {
        for (end = first; end < slots_used_ && !empty_at(end);) end = std::min(end + slots_at_once, slots_used_);
        if (end != first) visit(first, end - first);
        else end = std::min(end + slots_at_once, slots_used_);
    }
}

// A table of the ledger with a row for each device and owner slot; the rows that are in use.
template <class Row>
void LedgerCopy::read_rows(int fd, std::size_t offset, std::vector<Row>& rows) {
    rows.resize(std::size_t{devices_used_} * slots_used_);
    for (std::uint32_t device = 0; device < devices_used_; ++device)
        for_each_stretch([&](std::uint32_t first, std::uint32_t count) {
            const auto at = std::size_t{device} * owner_slots + first;
            copy(fd, offset + at * sizeof(Row), &rows[row(first, device)], count);
        });
}

void LedgerCopy::read_slots(int fd, Parts parts) {
    states_.resize(slots_used_);
    slots_.resize(slots_used_);
    copy(fd, offsetof(LedgerData, states), states_.data(), slots_used_);
    for_each_stretch([&](std::uint32_t first, std::uint32_t count) {
        copy(fd, offsetof(LedgerData, slots) + first * sizeof(Slot), &slots_[first], count);
    });
    read_rows(fd, offsetof(LedgerData, usage), usage_);
    if (parts != Parts::usage_and_activity) return;
    copy(fd, offsetof(LedgerData, past_activity), past_activity_.data(), device_slots);
    read_rows(fd, offsetof(LedgerData, activity), activity_);
}

void LedgerCopy::add_up() {
    for (std::uint32_t device = 0; device < devices_used_; ++device)
        for (std::uint32_t slot = 0; slot < slots_used_; ++slot) {
            if (!live(slot)) continue;
            for (std::size_t r = 0; r < resource_count; ++r) {
                auto& sum = sums_[device * resource_count + r];
                sum = bounded(sum + bounded(usage_[row(slot, device)].of[r]));
            }
        }
}

std::vector<LedgerDevice> LedgerCopy::devices() const {
    std::vector<LedgerDevice> result;
    for (std::uint32_t i = 0; i < devices_used_; ++i) {
        const auto& entry = head_->devices[i];
        result.push_back({i, std::string(fixed_text(entry.identity.text)), std::string(fixed_text(entry.name.text))});
    }
    return result;
}

std::vector<OwnerView> LedgerCopy::owners() const {
    std::vector<OwnerView> result;
    for (std::uint32_t i = 0; i < slots_used_; ++i) {
        if (!live(i)) continue;
        const auto& owner = slots_[i].owner;
        result.push_back({i, {owner.pid, owner.uid, owner.start_time, std::string(fixed_text(owner.comm))},
                          (slots_[i].ops & ops_in_flight_mask) != 0});
    }
    return result;
}

std::uint64_t LedgerCopy::usage(std::uint32_t slot, std::uint32_t device, Resource resource) const noexcept {
    return live(slot) && device < devices_used_ ? bounded(usage_[row(slot, device)].of[index(resource)]) : 0;
}

std::uint64_t LedgerCopy::tenant_usage(std::uint32_t device, Resource resource) const noexcept {
    return device < device_slots ? sums_[device * resource_count + index(resource)] : 0;
}

std::uint64_t LedgerCopy::gate(std::uint32_t device, Resource resource) const noexcept {
    return device < device_slots ? head_->gates[device][index(resource)] & gate_amount_mask : 0;
}

std::uint64_t LedgerCopy::soft_since(std::uint32_t device, Resource resource) const noexcept {
    return device < device_slots ? head_->soft_since[device][index(resource)] : 0;
}

Ledger::Delays LedgerCopy::delays(std::uint32_t device, Resource rate) const noexcept {
    if (device >= device_slots) return {};
    return {head_->soft_since[device][index(rate)], head_->peaks[device][index(rate)]};
}

std::uint64_t LedgerCopy::peak(std::uint32_t device, Resource resource) const noexcept {
    return device < device_slots ? std::max(head_->peaks[device][index(resource)], gate(device, resource)) : 0;
}

PastActivity LedgerCopy::activity(std::uint32_t slot, std::uint32_t device) const noexcept {
    PastActivity sum{};
    if (!activity_.empty() && live(slot) && device < devices_used_) add(activity_[row(slot, device)], sum);
    return sum;
}

PastActivity LedgerCopy::tenant_activity(std::uint32_t device) const noexcept {
    PastActivity sum{};
    if (device >= device_slots) return sum;
    add(past_activity_[device], sum);
    if (activity_.empty() || device >= devices_used_) return sum;
    for (std::uint32_t slot = 0; slot < slots_used_; ++slot)
        if (live(slot)) add(activity_[row(slot, device)], sum);
    return sum;
}

namespace {

// A half-written event is left out.
void read_ring(int fd, std::size_t head_at, std::size_t ring_at, std::uint32_t slots, std::uint64_t& next,
               NumberedEvents& result) {
    std::uint64_t head = 0;
    copy(fd, head_at, &head, 1);
    if (head <= next) return;
    std::vector<Event> ring(slots);
    copy(fd, ring_at, ring.data(), ring.size());
    for (auto number = std::max(next, head - std::min<std::uint64_t>(head, slots)); number < head; ++number) {
        const auto& event = ring[number % slots];
        if (event.sequence != 2 * number + 2) continue;
        result.emplace_back(number, event);
        next = number + 1;
    }
}

}  // namespace

NumberedEvents read_events(const std::string& path, EventCursor& cursor) {
    NumberedEvents result;
    struct stat status {};
    const int fd = open_ledger(path, status);
    if (fd < 0) return result;
    read_ring(fd, offsetof(LedgerHeader, event_head), offsetof(LedgerData, events), event_slots, cursor.denials,
              result);
    read_ring(fd, offsetof(LedgerHeader, repair_head), offsetof(LedgerData, repairs), repair_slots, cursor.repairs,
              result);
    close(fd);
    sort_by_time(result);
    return result;
}

}  // namespace rdmaquota
