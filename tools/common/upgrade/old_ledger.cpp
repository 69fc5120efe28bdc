#include "tools/common/upgrade/old_ledger.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace rdmaquota::upgrade {
namespace {

constexpr std::uint32_t lock_files = old_owner_slots / old_owners_per_lock_file;

// Byte 2i is the owner's of slot i. A reaper locks the byte behind it, too.
constexpr off_t owner_bytes = 1, slot_bytes = 2;

struct flock range(std::uint32_t slot, off_t bytes) noexcept {
    return {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = slot_bytes * slot, .l_len = bytes, .l_pid = 0};
}

enum class Holder : std::uint8_t { nobody, owner, other };

// An owner when it cannot be tested, so that nobody is taken for dead by mistake.
Holder holder(int fd, struct flock request) noexcept {
    if (fcntl(fd, F_OFD_GETLK, &request) != 0) return Holder::owner;
    if (request.l_type == F_UNLCK) return Holder::nobody;
    return request.l_len == owner_bytes ? Holder::owner : Holder::other;
}

bool lock(int fd, struct flock request) noexcept {
    int status = 0;
    do {
        status = fcntl(fd, F_OFD_SETLK, &request);
    } while (status != 0 && errno == EINTR);
    return status == 0;
}

OpenFile open_lock_file(const std::string& directory, std::uint32_t group) noexcept {
    return OpenFile(::open(old_lock_path(directory, group).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
}

// Copies `count` of T from `offset` within the ledger's data.
template <class T>
void copy(int fd, std::size_t offset, T* into, std::size_t count) noexcept {
    const auto bytes = count * sizeof(T);
    std::size_t done = 0;
    while (done < bytes) {
        const auto at = static_cast<off_t>(old_ledger_offset + offset + done);
        const auto got = pread(fd, reinterpret_cast<char*>(into) + done, bytes - done, at);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) break;
        done += static_cast<std::size_t>(got);
    }
    std::memset(reinterpret_cast<char*>(into) + done, 0, bytes - done);
}

std::uint64_t bounded(std::uint64_t amount) noexcept { return std::min(amount, old_gate_amount); }

std::uint64_t sum(std::uint64_t a, std::uint64_t b) noexcept { return bounded(bounded(a) + bounded(b)); }

// "*" and "total" are no devices.
bool may_be_charged(std::string_view name) noexcept {
    return valid_device(name) && name != any_device && name != total_device;
}

}  // namespace

Result<OldLedger> OldLedger::open(const std::string& directory) {
    const auto path = old_data_path(directory);
    OpenFile file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (!file) return Error{fmt::format("cannot read the ledger {}: {}", path, std::strerror(errno))};
    struct stat status {};
    if (fstat(file.fd(), &status) != 0 || !S_ISREG(status.st_mode))
        return Error{fmt::format("cannot read the ledger {}: it is no file", path)};
    return OldLedger(directory, std::move(file));
}

// Numbers and names. An entry whose name is not written yet, or forged, is left out.
std::vector<std::pair<std::uint32_t, std::string>> OldLedger::devices() const {
    std::vector<std::pair<std::uint32_t, std::string>> result;
    OldDeviceEntry entries[old_device_slots];
    copy(file_.fd(), offsetof(OldLedgerData, devices), entries, old_device_slots);
    for (std::uint32_t i = 0; i < old_device_slots && entries[i].key != 0; ++i) {
        std::string name(entries[i].name, strnlen(entries[i].name, sizeof entries[i].name));
        if (may_be_charged(name)) result.emplace_back(i, std::move(name));
    }
    return result;
}

// The names come first: what is charged to a device that appears after that is not in the result.
UsageByDevice OldLedger::cells(std::size_t offset) const {
    UsageByDevice result;
    const auto known = devices();
    OldCells all[old_device_slots];
    copy(file_.fd(), offset, all, old_device_slots);
    for (const auto& [number, name] : known) {
        auto& amounts = result[name];
        for (std::size_t r = 0; r < resource_count; ++r) amounts[r] = sum(amounts[r], all[number][r] & old_gate_amount);
    }
    return result;
}

UsageByDevice OldLedger::gates() const { return cells(offsetof(OldLedgerData, gates)); }

UsageByDevice OldLedger::peaks() const { return cells(offsetof(OldLedgerData, peaks)); }

// Calls visit(slot, lock file) for the slots that are taken, by whomever; the file is not open where that is not
// possible. `visit` may keep the file: the next slot gets it opened again.
template <class Visit>
void OldLedger::for_each_live(Visit visit) const {
    std::uint64_t used = 0;
    copy(file_.fd(), offsetof(OldLedgerData, header.slots_used), &used, 1);
    std::vector<std::uint32_t> states(std::min<std::uint64_t>(used, old_owner_slots));
    copy(file_.fd(), offsetof(OldLedgerData, states), states.data(), states.size());
    std::uint32_t open_group = lock_files;
    OpenFile file;
    for (std::uint32_t slot = 0; slot < states.size(); ++slot) {
        if (states[slot] != old_slot_live) continue;
        const auto group = slot / old_owners_per_lock_file;
        if (group != open_group) file = open_lock_file(directory_, open_group = group);
        visit(slot, file.fd());
    }
}

OldOwner OldLedger::owner(std::uint32_t slot, const std::vector<std::pair<std::uint32_t, std::string>>& devices) const {
    OldSlot read;
    copy(file_.fd(), offsetof(OldLedgerData, slots) + slot * sizeof(OldSlot), &read, 1);
    OldOwner owner{read.pid, read.uid, std::string(read.comm, strnlen(read.comm, sizeof read.comm)), {}};
    for (const auto& [number, name] : devices)
        for (std::size_t r = 0; r < resource_count; ++r)
            if (const auto amount = bounded(read.usage[number][r]); amount != 0)
                owner.usage[name][r] = sum(owner.usage[name][r], amount);
    return owner;
}

std::vector<OldOwner> OldLedger::owners() const {
    std::vector<OldOwner> result;
    const auto known = devices();
    for_each_live([&](std::uint32_t slot, int fd) {
        if (fd < 0 || holder(fd, range(slot, slot_bytes)) == Holder::owner) result.push_back(owner(slot, known));
    });
    return result;
}

OldLedger::Dead OldLedger::lock_dead() const {
    Dead dead;
    const auto known = devices();
    std::uint32_t locked_group = lock_files;
    for_each_live([&](std::uint32_t slot, int fd) {
        if (fd < 0 || holder(fd, range(slot, slot_bytes)) != Holder::nobody) return;
        const auto group = slot / old_owners_per_lock_file;
        if (group != locked_group) dead.locks.push_back(open_lock_file(directory_, locked_group = group));
        if (!dead.locks.back() || !lock(dead.locks.back().fd(), range(slot, slot_bytes))) return;
        add_to(dead.usage, owner(slot, known).usage);
    });
    return dead;
}

// All bytes of a file at once: whatever a slot's state says, who holds no lock is in no slot.
std::optional<NoOldOwners> lock_out_owners(const std::string& directory) {
    const auto all = [](std::uint32_t group) {
        return range(group * old_owners_per_lock_file, slot_bytes * old_owners_per_lock_file);
    };
    NoOldOwners gone;
    const auto for_each = [&](const auto& keep) {
        for (std::uint32_t group = 0; group < lock_files; ++group) {
            auto file = open_lock_file(directory, group);
            if (!file && errno == ENOENT) continue;  // who could hold a lock of it?
            if (!file || !keep(group, std::move(file))) return false;
        }
        return true;
    };
    // Looks first: a lock that is held, however briefly, keeps a process from joining.
    if (!for_each([&](std::uint32_t group, OpenFile file) { return holder(file.fd(), all(group)) == Holder::nobody; }))
        return std::nullopt;
    const bool locked = for_each([&](std::uint32_t group, OpenFile file) {
        return lock(file.fd(), all(group)) && (gone.locks.push_back(std::move(file)), true);
    });
    if (!locked) return std::nullopt;
    return gone;
}

void add_to(UsageByDevice& into, const UsageByDevice& usage) {
    for (const auto& [device, amounts] : usage) {
        auto& sums = into[device];
        for (std::size_t r = 0; r < resource_count; ++r) sums[r] = sum(sums[r], amounts[r]);
    }
}

std::uint64_t amount_in(const UsageByDevice& usage, std::string_view device, Resource resource) {
    const auto found = usage.find(device);
    return found == usage.end() ? 0 : found->second[index(resource)];
}

std::uint64_t total_in(const UsageByDevice& usage, Resource resource) {
    std::uint64_t total = 0;
    for (const auto& [device, amounts] : usage)
        if (!is_port(device)) total = sum(total, amounts[index(resource)]);
    return total;
}

}  // namespace rdmaquota::upgrade
