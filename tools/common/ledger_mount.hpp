// A file system of its own for each tenant's ledgers.
//
// Who may write a ledger may also grow its file, and tmpfs cannot forbid that. In one file system, a tenant could so take
// the room from which all others' ledgers get their pages. So each has a tmpfs that bounds its bytes and files.
#pragma once

#include <string>

#include "policy/result.hpp"

namespace rdmaquota {

// Mounts one at `path`, a directory, unless something is mounted there. The error says what then does not hold.
Result<void> mount_ledgers(const std::string& path);

// Whether something is mounted at `path`.
bool is_mount_point(const std::string& path);

// Unmounts it, also where it is in use; does nothing where nothing is mounted.
void unmount_ledgers(const std::string& path) noexcept;

// Whether this process's mounts are seen by the node. They are not where systemd gave a service mounts of its own.
bool mounts_are_seen();

}  // namespace rdmaquota
