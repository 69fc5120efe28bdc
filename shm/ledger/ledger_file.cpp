#include "shm/ledger/ledger_file.hpp"

#include <cerrno>
#include <cstring>
#include <memory>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

// Boost's spin locks, which nobody waits for while a ledger is made, would read a file of /sys for this in each process that loads us.
namespace boost::interprocess::ipcdetail {
template <int>
struct num_core_holder;
template <>
struct num_core_holder<0> {
    static unsigned get() noexcept { return 1; }
};
}  // namespace boost::interprocess::ipcdetail

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#include <boost/interprocess/managed_mapped_file.hpp>
#pragma GCC diagnostic pop

#include <fmt/core.h>

#include "shm/layout_version.hpp"

namespace rdmaquota {
namespace {

using Segment = boost::interprocess::managed_mapped_file;

void fill_header(LedgerHeader& header) {
    header.header_bytes = sizeof(LedgerHeader);
    header.total_bytes = sizeof(LedgerData);
    header.device_slots = device_slots;
    header.owner_slots = owner_slots;
    header.resource_slots = resource_slots;
    header.event_slots = event_slots;
    header.layout_version = layout_version;
    header.magic = ledger_magic;
}

// At `ledger_offset`, behind a filler. Not by allocate_aligned(), which wants twice the bytes in Boost 1.92.
void* allocate_ledger(Segment& segment) {
    constexpr std::size_t probe = 64;
    auto* first = static_cast<char*>(segment.allocate(probe));
    auto* second = static_cast<char*>(segment.allocate(probe));
    const auto begin = static_cast<std::size_t>(segment.get_handle_from_address(first));
    const auto overhead = static_cast<std::size_t>(second - first) - probe;
    segment.deallocate(second);
    segment.deallocate(first);
    segment.allocate(ledger_offset - begin - overhead);
    return segment.allocate(sizeof(LedgerData));
}

void build(const std::string& path) {
    const boost::interprocess::permissions permissions(0600);
    Segment segment(boost::interprocess::create_only, path.c_str(), ledger_file_bytes, nullptr, permissions);
    void* memory = allocate_ledger(segment);
    segment.construct<Segment::handle_t>(ledger_object_name)(segment.get_handle_from_address(memory));
    const auto offset = static_cast<char*>(memory) - static_cast<char*>(segment.get_address());
    if (segment.get_handle_from_address(memory) != static_cast<Segment::handle_t>(ledger_offset))
        throw std::runtime_error(fmt::format("the segment placed the ledger at {}, not at {}", offset, ledger_offset));
    fill_header(static_cast<LedgerData*>(memory)->header);
}

Error unusable(const std::string& path, const std::string& why) {
    return {fmt::format("{} is no usable ledger: {}; run 'rdmaquota reload' as root to replace it", path, why)};
}

Result<void> check(const std::string& path, const LedgerHeader& header) {
    if (header.magic != ledger_magic) return unusable(path, "it does not begin like one");
    if (const auto version = header.layout_version; version != layout_version)
        return unusable(path, fmt::format("its layout version is {}, this rdmaquota needs {}", version,
                                          layout_version));
    const bool same_numbers = header.header_bytes == sizeof(LedgerHeader) && header.total_bytes == sizeof(LedgerData) &&
                              header.device_slots == device_slots && header.owner_slots == owner_slots &&
                              header.resource_slots == resource_slots && header.event_slots == event_slots;
    if (!same_numbers) return unusable(path, "its table sizes are not those of this rdmaquota");
    return {};
}

Result<void> check_size(const std::string& path, const struct stat& status) {
    if (S_ISREG(status.st_mode) && static_cast<std::size_t>(status.st_size) == ledger_file_bytes) return {};
    return unusable(path, fmt::format("it has {} bytes instead of {}", status.st_size, ledger_file_bytes));
}

Result<void> check_file(const std::string& path, int fd) {
    struct stat status {};
    fstat(fd, &status);
    if (const auto sized = check_size(path, status); !sized) return sized;
    const auto header = std::make_unique<LedgerHeader>();  // 4 KiB, and the host program's stack may have 16
    if (pread(fd, header.get(), sizeof *header, ledger_offset) != static_cast<ssize_t>(sizeof *header))
        return Error{fmt::format("cannot read {}: {}", path, std::strerror(errno))};
    return check(path, *header);
}

// A descriptor that is the caller's to close.
Result<int> open_checked(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) {
        const char* remedy = errno == ENOENT   ? "; run 'rdmaquota reload' as root to create it"
                             : errno == EACCES ? "; only members of its tenant and root may use it"
                                               : "";
        return Error{fmt::format("cannot open the ledger {}: {}{}", path, std::strerror(errno), remedy)};
    }
    const auto checked = check_file(path, fd);
    if (checked) return fd;
    close(fd);
    return Error{checked.error()};
}

// Which limit of the process is in the way, if it is one.
std::string remedy_of_mapping(int error) {
    constexpr std::size_t mib = 1024 * 1024;
    constexpr auto size = (ledger_file_bytes + mib - 1) / mib;
    if (error == ENOMEM)
        return fmt::format("; it takes {} MiB of address space: raise this program's RLIMIT_AS (ulimit -v)", size);
    if (error == EAGAIN)
        return fmt::format("; this program locks its memory: raise its RLIMIT_MEMLOCK (ulimit -l) by {} MiB", size);
    return "";
}

}  // namespace

Result<void> create_ledger_file(const std::string& path) {
    try {
        const BusErrorsAbsorbed absorbed;
        build(path);
        if (!absorbed.any()) return {};
        unlink(path.c_str());
        return Error{fmt::format("cannot create {}: its file system is full", path)};
    } catch (const std::exception& failure) {
        unlink(path.c_str());
        return Error{fmt::format("cannot create {}: {}", path, failure.what())};
    }
}

Result<void> inspect_ledger_file(const std::string& path) {
    const auto fd = open_checked(path);
    if (!fd) return Error{fd.error()};
    close(*fd);
    return {};
}

Result<void> check_mapped_ledger(const std::string& path, const Mapping& mapping) {
    struct stat status {};
    ::stat(path.c_str(), &status);
    if (const auto sized = check_size(path, status); !sized) return sized;
    return check(path, ledger_data(mapping)->header);
}

Result<Mapping> map_ledger_file(const std::string& path) {
    const auto fd = open_checked(path);
    if (!fd) return Error{fd.error()};
    auto mapping = Mapping::map(*fd, ledger_file_bytes, true, Mapping::AfterLoss::zeroes);
    const int error = errno;
    close(*fd);
    if (!mapping)
        return Error{fmt::format("cannot map {}: {}{}", path, std::strerror(error), remedy_of_mapping(error))};
    return mapping;
}

LedgerData* ledger_data(const Mapping& mapping) noexcept {
    return reinterpret_cast<LedgerData*>(static_cast<char*>(mapping.address()) + ledger_offset);
}

}  // namespace rdmaquota
