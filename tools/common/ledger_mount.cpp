#include "tools/common/ledger_mount.hpp"

#include <sys/mount.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

// Room for a whole ledger and one that was moved aside; each has 65 files.
constexpr const char* bounds = "size=160m,nr_inodes=512,mode=755";
// For thousands of tenants, whose ledgers at rest take some 40 KiB.
constexpr const char* node_bounds = "size=1g,nr_inodes=1m,mode=755";

bool same(const struct stat& a, const struct stat& b) noexcept { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

// Whether the node sees what this process mounts. It does not where systemd gave a service mounts of its own.
bool mounts_are_seen() {
    struct stat own {
    }, first{};
    return ::stat("/proc/self/ns/mnt", &own) == 0 && ::stat("/proc/1/ns/mnt", &first) == 0 && same(own, first);
}

Result<void> mount_tmpfs(const std::string& path, const char* options) {
    if (is_mount_point(path) || !mounts_are_seen()) return {};
    if (::mount("rdmaquota", path.c_str(), "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) == 0) return {};
    if (errno == EPERM) return {};
    return Error{fmt::format("cannot mount a tmpfs at {}: {}; until then a tenant can fill the file system of all", path,
                             std::strerror(errno))};
}

}  // namespace

bool is_mount_point(const std::string& path) {
    struct stat at {
    }, above{};
    return ::stat(path.c_str(), &at) == 0 && ::stat((path + "/..").c_str(), &above) == 0 && at.st_dev != above.st_dev;
}

Result<void> mount_ledgers(const std::string& path) { return mount_tmpfs(path, bounds); }

Result<void> mount_node(const std::string& directory) {
    std::error_code unknown;
    if (!std::filesystem::is_empty(directory, unknown) || unknown) return {};
    return mount_tmpfs(directory, node_bounds);
}

void unmount_ledgers(const std::string& path) noexcept {
    if (is_mount_point(path) && mounts_are_seen()) ::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW);
}

}  // namespace rdmaquota
