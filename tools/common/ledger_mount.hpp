// File systems of their own for the node's quota directory and, in it, for each tenant's ledgers.
//
// Who may write a ledger may also grow its file, and tmpfs cannot forbid that. In one file system, a tenant could so take
// the room from which all others' ledgers get their pages, and /run's. So each tenant has a tmpfs that bounds its bytes and
// files. A sidecar that systemd gave mounts of its own cannot mount one for the tenants that it makes; their ledgers are
// in the directory's tmpfs, and what they grow is cut off each second.
#pragma once

#include <string>

#include "policy/result.hpp"

namespace rdmaquota {

// Mounts one at `path`, a directory, unless something is mounted there. Does nothing where this process may not mount, and
// where the node would not see it. The error says what then does not hold.
Result<void> mount_ledgers(const std::string& path);
// The same for a node's directory, as long as it is empty.
Result<void> mount_node(const std::string& directory);

// Whether something is mounted at `path`.
bool is_mount_point(const std::string& path);

// Unmounts it, also where it is in use; does nothing where nothing is mounted, or the node would not see it.
void unmount_ledgers(const std::string& path) noexcept;

}  // namespace rdmaquota
