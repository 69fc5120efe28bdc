#include "tools/rdmaquotad/node/ledger_head.hpp"

#include <cerrno>
#include <cstddef>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/ledger/ledger_file.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t head_bytes = offsetof(LedgerHeader, reserved0);

LedgerHead read_head(int fd) {
    LedgerHead head;
    struct stat status {};
    if (::fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return head;
    head.inode = status.st_ino;
    LedgerHeader header{};
    const auto got = ::pread(fd, &header, head_bytes, ledger_offset);
    head.sound = static_cast<std::size_t>(status.st_size) == ledger_file_bytes &&
                 got == static_cast<ssize_t>(head_bytes) && header.magic == ledger_magic &&
                 header.layout_version == layout_version && header.header_bytes == sizeof(LedgerHeader) &&
                 header.total_bytes == sizeof(LedgerData) && header.device_slots == device_slots &&
                 header.owner_slots == owner_slots && header.resource_slots == resource_slots &&
                 header.event_slots == event_slots;
    head.claims = header.claims;
    head.events = {header.event_head, header.repair_head};
    return head;
}

}  // namespace

std::optional<LedgerHead> read_ledger_head(const std::string& path) {
    const int fd = ::open(data_path(path).c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) return std::nullopt;
    if (fd < 0) return LedgerHead{};
    const auto head = read_head(fd);
    ::close(fd);
    return head;
}

}  // namespace rdmaquota
