#include "shm/policy/policy_lock.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <fmt/core.h>

#include "shm/same_file.hpp"

namespace rdmaquota {
namespace {

bool is_at(int fd, const std::string& path) noexcept {
    struct stat open_file {
    }, named{};
    return fstat(fd, &open_file) == 0 && stat(path.c_str(), &named) == 0 && same_file(open_file, named);
}

// Soon longer: many who wait must leave the processor to the one that has the lock. Not by much: who has waited for long must
// not lose to those who come.
class Pause {
public:
    void operator()() noexcept {
        const timespec pause{.tv_sec = 0, .tv_nsec = ns_};
        nanosleep(&pause, nullptr);
        ns_ = std::min(2 * ns_, longest_ns);
    }

private:
    static constexpr long longest_ns = 12'800'000;
    long ns_ = 100'000;
};

bool lock_until(int fd, std::chrono::steady_clock::time_point deadline, Pause& pause) noexcept {
    for (; flock(fd, LOCK_EX | LOCK_NB) != 0; pause())
        if (std::chrono::steady_clock::now() >= deadline) return false;
    return true;
}

}  // namespace

Result<PolicyLock> PolicyLock::take(const std::string& policy_path, std::chrono::milliseconds patience) {
    const auto path = policy_path + ".lock";
    const auto deadline = std::chrono::steady_clock::now() + patience;
    for (Pause pause;; pause()) {
        PolicyLock lock(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
        if (lock.fd_ < 0)
            return Error{fmt::format("cannot change {}: {}: {}{}", policy_path, path, std::strerror(errno),
                                     geteuid() == 0 ? "" : "; run as root")};
        // A lock file that was removed meanwhile excludes nobody.
        if (lock_until(lock.fd_, deadline, pause) && is_at(lock.fd_, path)) return lock;
        if (std::chrono::steady_clock::now() >= deadline)
            return Error{fmt::format("cannot change {}: another process has held {} for {} ms; try again", policy_path,
                                     path, patience.count())};
    }
}

PolicyLock::~PolicyLock() {
    if (fd_ >= 0) close(fd_);
}

}  // namespace rdmaquota
