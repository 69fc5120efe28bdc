// The list is made and set by hand, without libacl: this is linked into the provider, which needs libc only. Its form is
// the kernel's interface: <linux/posix_acl_xattr.h>, a header and then entries, little-endian.
#include "shm/ledger/access.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <endian.h>
#include <fcntl.h>
#include <linux/posix_acl.h>
#include <linux/posix_acl_xattr.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <fmt/core.h>

#include "shm/open_inside.hpp"

namespace rdmaquota {
namespace {

constexpr const char* acl_attribute = "system.posix_acl_access";
constexpr unsigned file_modes = 0666;  // nobody executes a ledger
constexpr unsigned read_write = ACL_READ | ACL_WRITE;
constexpr auto no_id = static_cast<std::uint32_t>(ACL_UNDEFINED_ID);

template <class Part>
void append(std::string& acl, const Part& part) {
    acl.append(reinterpret_cast<const char*>(&part), sizeof part);
}

void append_entry(std::string& acl, unsigned tag, unsigned permissions, std::uint32_t id = no_id) {
    append(acl, posix_acl_xattr_entry{htole16(static_cast<std::uint16_t>(tag)),
                                      htole16(static_cast<std::uint16_t>(permissions)), htole32(id)});
}

void append_entries(std::string& acl, unsigned tag, std::vector<std::uint32_t> ids) {
    std::sort(ids.begin(), ids.end());
    ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
    for (const auto id : ids) append_entry(acl, tag, read_write, id);
}

// The kernel wants the entries in this order (fs/posix_acl.c, posix_acl_valid).
std::string acl_of(const LedgerAccess& access) {
    std::string acl;
    append(acl, posix_acl_xattr_header{htole32(POSIX_ACL_XATTR_VERSION)});
    append_entry(acl, ACL_USER_OBJ, access.mode >> 6 & read_write);
    append_entries(acl, ACL_USER, access.users);
    append_entry(acl, ACL_GROUP_OBJ, access.mode >> 3 & read_write);
    append_entries(acl, ACL_GROUP, access.groups);
    append_entry(acl, ACL_MASK, read_write);
    append_entry(acl, ACL_OTHER, access.mode & read_write);
    return acl;
}

// Empty where there is no list, or the file system has none.
std::optional<std::string> read_acl(const std::string& path) {
    const auto size = lgetxattr(path.c_str(), acl_attribute, nullptr, 0);
    std::string acl(size > 0 ? static_cast<std::size_t>(size) : 0, '\0');
    if (size > 0 && lgetxattr(path.c_str(), acl_attribute, acl.data(), acl.size()) == size) return acl;
    if (size < 0 && (errno == ENODATA || errno == EOPNOTSUPP)) return acl;
    return std::nullopt;
}

bool remove_acl(int fd) noexcept {
    return fremovexattr(fd, acl_attribute) == 0 || errno == ENODATA || errno == EOPNOTSUPP;
}

bool give(int fd, const FileRights& rights) {
    if (!rights.owner && !rights.group) return true;
    struct stat now {};
    if (fstat(fd, &now) != 0) return false;
    const auto owner = rights.owner.value_or(now.st_uid);
    const auto group = rights.group.value_or(now.st_gid);
    return (owner == now.st_uid && group == now.st_gid) || fchown(fd, owner, group) == 0;
}

Error cannot(const char* what, const std::string& path) {
    return {fmt::format("cannot set the {} of {}: {}", what, path, std::strerror(errno))};
}

}  // namespace

FileRights rights_for(const LedgerAccess& access) {
    const bool has_list = !access.users.empty() || !access.groups.empty();
    return {access.mode & file_modes, {}, {}, has_list ? acl_of(access) : std::string()};
}

std::optional<FileRights> rights_of(const std::string& path) {
    struct stat status {};
    if (lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
    auto acl = read_acl(path);
    if (!acl) return std::nullopt;
    return FileRights{status.st_mode & file_modes, status.st_uid, status.st_gid, std::move(*acl)};
}

namespace {

bool is_one_of(std::uint32_t group, std::span<const gid_t> groups) noexcept {
    return std::find(groups.begin(), groups.end(), group) != groups.end();
}

// Whether the list names the user, or one of the groups. The lists that are made here mask nothing.
bool list_admits(const std::string& acl, uid_t user, std::span<const gid_t> groups) noexcept {
    for (auto at = sizeof(posix_acl_xattr_header); at + sizeof(posix_acl_xattr_entry) <= acl.size();
         at += sizeof(posix_acl_xattr_entry)) {
        posix_acl_xattr_entry entry;
        std::memcpy(&entry, acl.data() + at, sizeof entry);
        const auto tag = le16toh(entry.e_tag);
        const auto id = le32toh(entry.e_id);
        if ((le16toh(entry.e_perm) & ACL_WRITE) == 0) continue;
        if ((tag == ACL_USER && id == user) || (tag == ACL_GROUP && is_one_of(id, groups))) return true;
    }
    return false;
}

}  // namespace

bool admits(const FileRights& rights, uid_t user, std::span<const gid_t> groups) noexcept {
    if ((rights.mode & 0002) != 0 || rights.owner == user) return true;
    if (!rights.acl.empty()) return list_admits(rights.acl, user, groups);
    return (rights.mode & 0020) != 0 && rights.group && is_one_of(*rights.group, groups);
}

// chmod(2) comes before the list, of which it would change the mask. Null on success.
static const char* set_of(int fd, const FileRights& rights) {
    const auto& acl = rights.acl;
    if (!give(fd, rights)) return "owner";
    if (!remove_acl(fd)) return "access control list";
    if (fchmod(fd, rights.mode) != 0) return "permissions";
    return acl.empty() || fsetxattr(fd, acl_attribute, acl.data(), acl.size(), 0) == 0 ? nullptr : "access control list";
}

static Result<void> set_and_close(int fd, const std::string& path, const FileRights& rights) {
    const auto* failed = set_of(fd, rights);
    const int error = errno;
    close(fd);
    errno = error;
    return failed ? Result<void>(cannot(failed, path)) : Result<void>();
}

Result<void> set_rights(const std::string& path, const FileRights& rights) {
    const int fd = open_inside(path, O_RDONLY);
    return fd < 0 ? Result<void>(cannot("rights", path)) : set_and_close(fd, path, rights);
}

Result<void> create_file(const std::string& path, const FileRights& rights) {
    const int fd = open_inside(path, O_RDWR | O_CREAT | O_EXCL);
    if (fd < 0) return Error{fmt::format("cannot create {}: {}", path, std::strerror(errno))};
    return set_and_close(fd, path, rights);
}

unsigned directory_mode(const FileRights& rights) noexcept {
    const bool given_away = rights.owner && *rights.owner != geteuid();
    return given_away || !rights.acl.empty() || (rights.mode & 0066) != 0 ? 0755 : 0700;
}

}  // namespace rdmaquota
