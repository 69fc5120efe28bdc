// Who may charge a ledger: the rights of its files.
//
// A ledger's data file and its lock files have the same rights. Its directories stay with the user who makes them,
// root on a node, so that a member who may write the files can neither rename nor delete them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "policy/result.hpp"

namespace rdmaquota {

// The files stay with the user and the group of the process that makes the ledger, root on a node: a member who owned
// them could stop root's openings by leases (fcntl(2)) and give others rights.
struct LedgerAccess {
    unsigned mode = 0600;
    std::vector<uid_t> users;   // further ones who may charge, by an access control list (acl(5))
    std::vector<gid_t> groups;

    static LedgerAccess everyone() { return {.mode = 0666, .users = {}, .groups = {}}; }
};

// The same as the kernel takes it. A file that replaces another has that one's owner and group, which only root can give.
struct FileRights {
    unsigned mode = 0600;
    std::optional<uid_t> owner;
    std::optional<gid_t> group;
    std::string acl;  // the extended attribute system.posix_acl_access; empty: no list
};

FileRights rights_for(const LedgerAccess& access);

// The rights of a regular file; nullopt where there is none or they cannot be read.
std::optional<FileRights> rights_of(const std::string& path);

// Whether a process with these ids may write to a file with these rights, apart from root's powers.
bool admits(const FileRights& rights, uid_t user, std::span<const gid_t> groups) noexcept;

// Gives a file or directory that the caller owns exactly these rights, whatever it inherited from its directory.
Result<void> set_rights(const std::string& path, const FileRights& rights);

// An empty file with these rights, where there is none.
Result<void> create_file(const std::string& path, const FileRights& rights);

// The mode of the directories: only others who may charge have to pass through them.
unsigned directory_mode(const FileRights& rights) noexcept;

}  // namespace rdmaquota
