#include "tools/common/tenants/ledger_mount.hpp"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "shm/same_file.hpp"
#include "tools/common/tenants/mount_copy.hpp"

namespace rdmaquota {
namespace {

// Room for a whole ledger and one that was moved aside; each has 65 files.
constexpr const char* bounds = "size=160m,nr_inodes=512,mode=755";
// For thousands of tenants, whose ledgers at rest take some 40 KiB.
constexpr const char* node_bounds = "size=1g,nr_inodes=1m,mode=755";

// Where the node sees what is mounted: in the first process's mounts. systemd gives a service mounts of its own.
constexpr const char* node_mounts = "/proc/1/ns/mnt";

bool has_node_mounts() {
    struct stat own {
    }, first{};
    return ::stat("/proc/self/ns/mnt", &own) == 0 && ::stat(node_mounts, &first) == 0 && same_file(own, first);
}

bool enter_node_mounts() {
    const int node = ::open(node_mounts, O_RDONLY | O_CLOEXEC);
    return node >= 0 && ::setns(node, CLONE_NEWNS) == 0 && ::chdir("/") == 0;
}

// Calls a function that returns an errno, 0 for none, in a child where it has to change to the node's mounts, and returns
// that. EPERM where this process cannot get there, and where `path` is something else there: in another root, for example.
template <class Call>
int among_node_mounts(const std::string& path, const Call& call) {
    if (has_node_mounts()) return call();
    struct stat here {
    }, there{};
    if (::stat(path.c_str(), &here) != 0) return errno;
    const pid_t child = ::fork();
    if (child == 0)
        ::_exit(enter_node_mounts() && ::stat(path.c_str(), &there) == 0 && same_file(here, there) ? call() : EPERM);
    int status = 0;
    while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    return child > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : EPERM;
}

// What is mounted in it later is then seen in the mounts of services too. systemd makes all mounts so, others do not.
int share(const std::string& path) {
    return among_node_mounts(path, [&] {
        return ::mount(nullptr, path.c_str(), nullptr, MS_SHARED, nullptr) == 0 ? 0 : errno;
    });
}

int detach(const std::string& path) { return ::umount2(path.c_str(), MNT_DETACH | UMOUNT_NOFOLLOW) == 0 ? 0 : errno; }

// Root in a container may write here: a link that it leaves must not lead whoever reads or removes a ledger elsewhere. Before
// Linux 5.10 the kernel does not know MS_NOSYMFOLLOW, and ignores it.
int mount_at(const std::string& path, const char* options) {
    constexpr auto flags = MS_NOSUID | MS_NODEV | MS_NOEXEC | MS_NOSYMFOLLOW;
    return ::mount("rdmaquota", path.c_str(), "tmpfs", flags, options) == 0 ? 0 : errno;
}

// What is mounted for the node has to be seen here too, or this process would go on below it: the mount above is shared.
Result<void> mount_tmpfs(const std::string& path, const char* options) {
    if (is_mount_point(path)) return {};
    const int error = among_node_mounts(path, [&] { return mount_at(path, options); });
    if (error == 0 && !is_mount_point(path)) among_node_mounts(path + "/..", [&] { return detach(path); });
    if (error == 0 || error == EPERM) return {};
    return Error{fmt::format("cannot mount a tmpfs at {}: {}; until then a tenant can fill the file system of all", path,
                             std::strerror(error))};
}

int mount_again(const std::string& directory, const std::string& second) {
    if (!is_mount_point(directory) || same_file(directory, second)) return 0;
    while (is_mount_point(second))  // of a directory that was removed and created again
        if (const int error = detach(second); error != 0) return error;
    return mount_copy(directory, second);
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
    if (std::filesystem::is_empty(directory, unknown) && !unknown)
        if (auto mounted = mount_tmpfs(directory, node_bounds); !mounted) return mounted;
    if (is_mount_point(directory)) share(directory);
    return {};
}

Result<void> mount_second(const std::string& directory, const std::string& second) {
    const int error = among_node_mounts(directory, [&] { return mount_again(directory, second); });
    if (error == 0 || error == EPERM) return {};
    return Error{fmt::format(
        "cannot mount {} at {}: {}{}; until then the programs of hardened units are not held to their limits",
        directory, second, std::strerror(error), error == ENOSYS ? " before Linux 5.12" : "")};
}

void unmount_ledgers(const std::string& path) noexcept {
    if (is_mount_point(path)) among_node_mounts(path, [&] { return detach(path); });
}

}  // namespace rdmaquota
