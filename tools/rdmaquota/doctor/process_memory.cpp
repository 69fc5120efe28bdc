#include "tools/rdmaquota/doctor/process_memory.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <utility>

#include <fmt/core.h>

#include "tools/common/process/maps_reader.hpp"

namespace rdmaquota {
namespace {

std::optional<Mapped> parse_mapping(const std::string& line) {
    unsigned long begin = 0;
    unsigned long end = 0;
    char rights[5] = {};
    int name = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %*s %*s %*s %n", &begin, &end, rights, &name) != 3) return std::nullopt;
    return Mapped{begin,
                  end,
                  rights[1] == 'w',
                  rights[2] == 'x',
                  rights[3] == 's',
                  name > 0 ? line.substr(static_cast<std::size_t>(name)) : ""};
}

// None: the process does not let its mappings be read.
std::optional<std::vector<Mapped>> mappings_of(int pid) {
    const auto text = read_maps(fmt::format("/proc/{}", pid));
    if (!text) return std::nullopt;
    std::vector<Mapped> maps;
    std::istringstream lines(text->text);
    for (std::string line; std::getline(lines, line);)
        if (auto mapping = parse_mapping(line)) maps.push_back(std::move(*mapping));
    return maps;
}

}  // namespace

Result<ProcessMemory> ProcessMemory::open(int pid) {
    const int file = ::open(fmt::format("/proc/{}/mem", pid).c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return Error{fmt::format("cannot look into process {}: {}", pid, std::strerror(errno))};
    auto maps = mappings_of(pid);
    if (!maps || maps->empty()) {
        ::close(file);
        if (!maps)
            return Error{fmt::format("cannot look into process {}: reading /proc/{}/maps does not end; the process, or a file system of "
                                     "its user (FUSE), keeps it waiting", pid, pid)};
        return Error{fmt::format("cannot look into process {}: it has no memory, or you may not read it", pid)};
    }
    const int page_map = ::open(fmt::format("/proc/{}/pagemap", pid).c_str(), O_RDONLY | O_CLOEXEC);
    return ProcessMemory(file, page_map, std::move(*maps));
}

ProcessMemory::ProcessMemory(ProcessMemory&& other) noexcept
    : file_(std::exchange(other.file_, -1)),
      page_map_(std::exchange(other.page_map_, -1)),
      maps_(std::move(other.maps_)) {}

ProcessMemory::~ProcessMemory() {
    if (file_ >= 0) ::close(file_);
    if (page_map_ >= 0) ::close(page_map_);
}

const Mapped* ProcessMemory::at(std::uint64_t address) const noexcept {
    const auto after =
        std::upper_bound(maps_.begin(), maps_.end(), address,
                         [](std::uint64_t value, const Mapped& mapping) { return value < mapping.begin; });
    if (after == maps_.begin()) return nullptr;
    const auto& mapping = *std::prev(after);
    return address < mapping.end ? &mapping : nullptr;
}

std::vector<std::uint64_t> ProcessMemory::words(std::uint64_t address, std::size_t count) const {
    std::vector<std::uint64_t> result(count);
    const auto got = ::pread(file_, result.data(), count * sizeof(std::uint64_t), static_cast<off_t>(address));
    result.resize(got > 0 ? static_cast<std::size_t>(got) / sizeof(std::uint64_t) : 0);
    return result;
}

std::string ProcessMemory::text(std::uint64_t address, std::size_t most) const {
    std::string result(most, '\0');
    const auto got = ::pread(file_, result.data(), most, static_cast<off_t>(address));
    result.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    return result.substr(0, result.find('\0'));
}

std::vector<bool> ProcessMemory::used_pages(std::uint64_t address, std::size_t count) const {
    // One word for each page; see pagemap in the kernel's Documentation/admin-guide/mm.
    constexpr auto in_memory_or_swap = std::uint64_t{3} << 62;
    std::vector<std::uint64_t> entries(count, in_memory_or_swap);
    (void)!::pread(page_map_, entries.data(), count * sizeof(std::uint64_t),
                   static_cast<off_t>(address / page_bytes * sizeof(std::uint64_t)));
    std::vector<bool> used(count);
    for (std::size_t i = 0; i < count; ++i) used[i] = (entries[i] & in_memory_or_swap) != 0;
    return used;
}

}  // namespace rdmaquota
