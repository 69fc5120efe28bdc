#include "tools/common/process/slot_maps.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <string_view>

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "shm/ledger/layout.hpp"
#include "shm/lock_file.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {

void add_lock_file(LockFiles& files, const std::string& path, std::uint32_t slot, std::uint32_t number) {
    struct stat status {};
    if (::stat(lock_path(path, slot).c_str(), &status) == 0) files[{status.st_dev, status.st_ino}] = number;
}

void add_lock_files(LockFiles& files, const std::string& path, std::uint32_t number) {
    for (std::uint32_t slot = 0; slot < owner_slots; slot += owners_per_lock_file) add_lock_file(files, path, slot, number);
}

namespace {

// Takes the next word off the line.
std::string_view word_of(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    const auto word = line.substr(0, line.find(' '));
    line.remove_prefix(word.size());
    return word;
}

template <class Number>
Number number_in(std::string_view word, int base) {
    Number number = 0;
    std::from_chars(word.data(), word.data() + word.size(), number, base);
    return number;
}

// A line is "begin-end rights offset device inode path", the offset and the device in hexadecimal. The offset shows the slot's
// number within the whole ledger.
std::optional<LedgerSlot> slot_in_line(std::string_view line, const LockFiles& lock_files) {
    for (int word = 0; word < 2; ++word) word_of(line);
    const auto slot = number_in<std::uint64_t>(word_of(line), 16) / LockFile::hold_stride;
    const auto device = word_of(line);
    const auto colon = std::min(device.find(':'), device.size() - 1);
    const auto major = number_in<unsigned>(device.substr(0, colon), 16), minor = number_in<unsigned>(device.substr(colon + 1), 16);
    const auto file = lock_files.find({makedev(major, minor), number_in<ino_t>(word_of(line), 10)});
    if (file == lock_files.end() || slot >= owner_slots) return std::nullopt;
    return LedgerSlot{file->second, static_cast<std::uint32_t>(slot)};
}

}  // namespace

std::vector<LedgerSlot> slots_in_maps(const std::string& maps, const LockFiles& lock_files) {
    constexpr std::string_view inside = "/owners/";
    std::set<LedgerSlot> slots;
    for (std::size_t at = 0; (at = maps.find(inside, at)) != maps.npos && slots.size() < most_slots_of_process;) {
        const auto begin = maps.rfind('\n', at) + 1;  // 0 in the first line
        const auto end = std::min(maps.find('\n', at), maps.size());
        if (const auto slot = slot_in_line(std::string_view(maps).substr(begin, end - begin), lock_files)) slots.insert(*slot);
        at = end;
    }
    return {slots.begin(), slots.end()};
}

}  // namespace rdmaquota
