#include "tools/rdmaquotad/loop/instance_lock.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>

#include <fmt/core.h>

#include "shm/same_file.hpp"

namespace rdmaquota {
namespace {

constexpr int most_attempts = 10;

// Created when missing, with mode 0600. Closed at the end of its scope, and so unlocked, unless it is kept.
struct LockFile {
    explicit LockFile(const std::string& path)
        : fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600)) {}
    LockFile(const LockFile&) = delete;
    ~LockFile() {
        if (fd >= 0 && !kept) ::close(fd);
    }
    const int fd;
    bool kept = false;
};

// Tries to lock the file. F_UNLCK: done. F_WRLCK: another rdmaquotad has locked it. F_RDLCK: somebody who can only read
// the file has.
short lock(int fd) {
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    if (::fcntl(fd, F_OFD_SETLK, &whole) == 0) return F_UNLCK;
    return ::fcntl(fd, F_OFD_GETLK, &whole) == 0 && whole.l_type == F_RDLCK ? F_RDLCK : F_WRLCK;
}

bool only_ours(int fd) {
    struct stat status {};
    return ::fstat(fd, &status) == 0 && status.st_uid == ::geteuid() && (status.st_mode & 077) == 0;
}

bool is_at(const std::string& path, int fd) {
    struct stat there {}, here {};
    return ::lstat(path.c_str(), &there) == 0 && ::fstat(fd, &here) == 0 && same_file(there, here);
}

// An OFD lock has no pid, so the file names its holder, for people.
std::string holder(int fd) {
    char text[16] = {};
    const auto got = ::pread(fd, text, sizeof text - 1, 0);
    int pid = 0;
    std::from_chars(text, text + (got > 0 ? got : 0), pid);
    return pid > 0 ? fmt::format(" as process {}", pid) : "";
}

void keep(LockFile& file) {
    file.kept = true;
    const auto text = fmt::format("{}\n", ::getpid());
    if (::ftruncate(file.fd, 0) != 0 || ::pwrite(file.fd, text.data(), text.size(), 0) < 0) return;  // then it names nobody
}

const char* remedy(int error) {
    if (error == ENOENT) return "; run 'rdmaquota reload' to make the directory";
    return error == EACCES ? "; run as root, or as the directory's owner" : "";
}

// Replaces `old`, which others can lock, by a new file. Only the process that has locked PATH.new renames or removes
// it, so that one of several succeeds.
bool replace(const std::string& path, int old) {
    const auto fresh = path + ".new";
    LockFile file(fresh);
    if (file.fd < 0 || lock(file.fd) != F_UNLCK || !is_at(fresh, file.fd) || !only_ours(file.fd)) return false;
    if (!is_at(path, old) || std::rename(fresh.c_str(), path.c_str()) != 0) {
        ::unlink(fresh.c_str());
        return false;
    }
    keep(file);
    return true;
}

}  // namespace

Result<void> lock_instance(const std::string& directory) {
    const auto path = directory + "/rdmaquotad.lock";
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
        LockFile file(path);
        if (file.fd < 0)
            return Error{fmt::format("cannot open {}: {}{}", path, std::strerror(errno), remedy(errno))};
        const auto whose = lock(file.fd);
        if (whose == F_WRLCK)
            return Error{fmt::format("rdmaquotad already runs for {}{}; stop it first", directory, holder(file.fd))};
        if (!is_at(path, file.fd)) continue;
        if (whose == F_UNLCK && only_ours(file.fd)) return keep(file), Result<void>{};
        if (replace(path, file.fd)) return {};
    }
    return Error{fmt::format("others hold {}; remove it", path)};
}

}  // namespace rdmaquota
