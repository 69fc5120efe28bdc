#include "shm/ledger/ledger_gates.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/ledger/ledger_file.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

struct Fd {
    int number;
    explicit Fd(const std::string& path) noexcept
        : number(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}
    Fd(const Fd&) = delete;
    ~Fd() {
        if (number >= 0) close(number);
    }
};

// False when the file is shorter.
bool copy(int fd, std::size_t offset, void* into, std::size_t bytes) {
    ssize_t got = 0;
    do got = pread(fd, into, bytes, static_cast<off_t>(ledger_offset + offset));
    while (got < 0 && errno == EINTR);
    return got == static_cast<ssize_t>(bytes);
}

// The first `most` entries; how many of them are used.
std::size_t read_used(int fd, DeviceEntry* entries, std::size_t most) {
    if (!copy(fd, offsetof(LedgerData, devices), entries, most * sizeof *entries)) return 0;
    std::size_t count = 0;
    while (count < most && entries[count].key != 0) ++count;
    return count;
}

}  // namespace

bool GateReader::read(const std::string& path) {
    const Fd fd(data_path(path));
    struct stat status {};
    if (fd.number < 0 || fstat(fd.number, &status) != 0 || !S_ISREG(status.st_mode)) return clear();
    bool changed = false;
    if (status.st_ino != inode_ || status.st_dev != device_) changed = clear();
    inode_ = status.st_ino;
    device_ = status.st_dev;
    if (read_names(fd.number)) changed = true;
    if (read_from(fd.number)) changed = true;
    return changed;
}

bool GateReader::clear() noexcept {
    const bool changed = !gates_.empty();
    gates_.clear();
    inode_ = device_ = 0;
    return changed;
}

// Devices only come, behind those that are there; but a name is written after its key.
bool GateReader::read_names(int fd) {
    DeviceEntry entries[device_slots];
    const auto known = gates_.size();
    auto count = read_used(fd, entries, std::min<std::size_t>(known + 1, device_slots));
    if (count > known) count = read_used(fd, entries, device_slots);
    bool changed = count != known;
    gates_.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto& name = entries[i].name.text;
        const std::string_view now(name, strnlen(name, sizeof name));
        if (now == gates_[i].device) continue;
        gates_[i].device = now;
        changed = true;
    }
    return changed;
}

bool GateReader::read_from(int fd) {
    std::uint64_t amounts[device_slots][resource_slots], wanted[device_slots][resource_slots];
    const auto bytes = gates_.size() * sizeof(CellRow);
    if (!copy(fd, offsetof(LedgerData, gates), amounts, bytes) ||
        !copy(fd, offsetof(LedgerData, demand), wanted, bytes))
        return clear();
    bool changed = false;
    for (std::size_t i = 0; i < gates_.size(); ++i)
        for (std::size_t r = 0; r < limit_count; ++r) {
            const auto gate = amounts[i][r] & gate_amount_mask;
            changed |= wanted[i][r] != std::exchange(gates_[i].wanted[r], wanted[i][r]);
            if (r < resource_count) changed |= gate != std::exchange(gates_[i].gate[r], gate);
        }
    return changed;
}

}  // namespace rdmaquota
