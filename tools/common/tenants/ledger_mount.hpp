// File systems of their own for the node's quota directory and, in it, for each tenant's ledgers.
//
// Who may write a ledger may also grow its file, and tmpfs cannot forbid that. In one file system, a tenant could so take
// the room from which all others' ledgers get their pages, and /run's. So each tenant has a tmpfs that bounds its bytes and
// files. A process with mounts of its own, as systemd gives them to a service, mounts it in a child that goes to those of
// the node's first process (setns(2): CAP_SYS_ADMIN, CAP_SYS_CHROOT and CAP_SYS_PTRACE). Where that is not possible, the
// ledgers are in the directory's tmpfs, and the sidecar cuts off each second what was grown.
#pragma once

#include <string>

#include "policy/result.hpp"

namespace rdmaquota {

// Mounts one at `path`, a directory, unless something is mounted there. Does nothing where this process may not mount, or
// does not see what the node has mounted. May fork, so call it in a process of one thread. The error says what then does not hold.
Result<void> mount_ledgers(const std::string& path);
// The same for a node's directory, as long as it is empty.
Result<void> mount_node(const std::string& directory);

// Mounts a node's directory, which is a mount point, at `second` too, for programs whose mounts hide the first place or
// show it read-only. Replaces what is mounted there of a directory that was removed meanwhile. Does nothing where this
// process may not mount. The error says what then does not hold.
Result<void> mount_second(const std::string& directory, const std::string& second);

// Whether something is mounted at `path`.
bool is_mount_point(const std::string& path);

// Unmounts it, also where it is in use; does nothing where nothing is mounted.
void unmount_ledgers(const std::string& path) noexcept;

}  // namespace rdmaquota
