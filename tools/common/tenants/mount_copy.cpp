#include "tools/common/tenants/mount_copy.hpp"

// Not <sys/mount.h>, which has no mount_attr before glibc 2.36 and cannot be included beside this.
#include <fcntl.h>
#include <linux/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace rdmaquota {
namespace {

// For everyone, whatever the umask: the kernel puts devices into /dev/infiniband later.
int create_directory(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) != 0) return errno == EEXIST ? 0 : errno;
    return ::chmod(path.c_str(), 0755) == 0 ? 0 : errno;
}

// Read-only before it is attached, since mounts of other processes that follow /dev get it at that moment.
int attach(int tree, const std::string& to) {
    mount_attr attributes{};
    attributes.attr_set = MOUNT_ATTR_RDONLY;
    attributes.propagation = MS_SLAVE;
    if (::syscall(SYS_mount_setattr, tree, "", AT_EMPTY_PATH, &attributes, sizeof attributes) != 0) return errno;
    for (const auto& directory : {to.substr(0, to.rfind('/')), to})
        if (const int error = create_directory(directory); error != 0) return error;
    return ::syscall(SYS_move_mount, tree, "", AT_FDCWD, to.c_str(), MOVE_MOUNT_F_EMPTY_PATH) == 0 ? 0 : errno;
}

}  // namespace

int mount_copy(const std::string& from, const std::string& to) {
    constexpr unsigned flags = OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC | AT_RECURSIVE;
    const auto tree = static_cast<int>(::syscall(SYS_open_tree, AT_FDCWD, from.c_str(), flags));
    if (tree < 0) return errno;
    const int error = attach(tree, to);
    ::close(tree);
    return error;
}

}  // namespace rdmaquota
