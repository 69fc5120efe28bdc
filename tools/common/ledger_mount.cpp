#include "tools/common/ledger_mount.hpp"

#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

// Room for a whole ledger and one that was moved aside; each has 65 files.
constexpr const char* bounds = "size=160m,nr_inodes=512,mode=755";

bool same(const struct stat& a, const struct stat& b) noexcept { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

}  // namespace

bool is_mount_point(const std::string& path) {
    struct stat at {
    }, above{};
    return ::stat(path.c_str(), &at) == 0 && ::stat((path + "/..").c_str(), &above) == 0 && at.st_dev != above.st_dev;
}

Result<void> mount_ledgers(const std::string& path) {
    if (is_mount_point(path)) return {};
    if (::mount("rdmaquota", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, bounds) == 0) return {};
    return Error{fmt::format("cannot mount a tmpfs at {}: {}; until then a member of the tenant can fill the file system "
                             "that all ledgers are in", path, std::strerror(errno))};
}

void unmount_ledgers(const std::string& path) noexcept {
    if (is_mount_point(path)) ::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
}

bool mounts_are_seen() {
    struct stat own {
    }, first{};
    return ::stat("/proc/self/ns/mnt", &own) != 0 || ::stat("/proc/1/ns/mnt", &first) != 0 || same(own, first);
}

}  // namespace rdmaquota
