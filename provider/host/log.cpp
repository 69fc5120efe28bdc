#include "provider/host/log.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <ctime>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <syslog.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "shm/same_file.hpp"

namespace rdmaquota::provider::log {
namespace {

constexpr unsigned lines_per_second = 10;

struct stat standard_error_at_load {};

bool standard_error_is_ours() noexcept {
    struct stat now {};
    if (fstat(STDERR_FILENO, &now) != 0) return false;
    if (isatty(STDERR_FILENO)) return true;
    const int flags = fcntl(STDERR_FILENO, F_GETFL);
    const bool log_like = (flags & O_APPEND) != 0 || same_file(now, standard_error_at_load);
    if (!S_ISREG(now.st_mode)) return log_like;
    // A file that the program opened for itself, on the number of a closed stderr, holds its data.
    const bool inherited = (fcntl(STDERR_FILENO, F_GETFD) & FD_CLOEXEC) == 0;
    return log_like && inherited && (flags & O_ACCMODE) == O_WRONLY;
}

// True when this line may be written; `left_out` is then the number of lines that were dropped before it.
bool admitted(unsigned& left_out) noexcept {
    static std::atomic<long> second{0};
    static std::atomic<unsigned> lines{0};
    static std::atomic<unsigned> suppressed{0};
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    if (second.exchange(time.tv_sec) != time.tv_sec) lines = 0;
    if (lines.fetch_add(1) < lines_per_second) {
        left_out = suppressed.exchange(0);
        return true;
    }
    suppressed.fetch_add(1);
    return false;
}

// While it lives, a broken pipe is an error for this thread and no signal.
class NoBrokenPipe {
public:
    NoBrokenPipe() noexcept {
        sigemptyset(&pipe_);
        sigaddset(&pipe_, SIGPIPE);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGPIPE) == 1;
        pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~NoBrokenPipe() {
        const timespec now{};
        while (!was_pending_ && sigtimedwait(&pipe_, nullptr, &now) < 0 && errno == EINTR) {
        }
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    NoBrokenPipe(const NoBrokenPipe&) = delete;

private:
    sigset_t pipe_;
    sigset_t before_;
    bool was_pending_ = false;
};

// Drops a line that would have to wait for a reader. A pipe that is ready takes up to PIPE_BUF bytes at once.
void write_line(int fd, const std::string& line) noexcept {
    pollfd ready{fd, POLLOUT, 0};
    if (poll(&ready, 1, 0) != 1 || !(ready.revents & POLLOUT)) return;
    const NoBrokenPipe guard;
    if (::write(fd, line.data(), std::min<std::size_t>(line.size(), PIPE_BUF)) < 0) return;
}

// False where the file cannot be opened for that, as by one of its other users.
bool append(const std::string& file, const std::string& line) noexcept {
    const int fd =
        open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0644);
    if (fd < 0) return false;
    struct stat status {};
    const bool regular = fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
    if (regular) write_line(fd, line);
    close(fd);
    return regular;
}

int syslog_priority(LogLevel level) noexcept {
    switch (level) {
        case LogLevel::error:
            return LOG_ERR;
        case LogLevel::warning:
            return LOG_WARNING;
        case LogLevel::info:
            return LOG_INFO;
        default:
            return LOG_DEBUG;
    }
}

void deliver(const Target& target, LogLevel level, std::string_view message) {
    unsigned left_out = 0;
    if (!admitted(left_out)) return;
    const auto note = left_out ? fmt::format(" ({} lines left out before this one)", left_out) : std::string();
    const auto line = fmt::format("rdmaquota: {}{}\n", printable(message), note);
    switch (target.target) {
        case LogTarget::syslog:
            return ::syslog(LOG_USER | syslog_priority(level), "%s", line.c_str());
        case LogTarget::file:
            if (append(target.file, line)) return;
            [[fallthrough]];
        case LogTarget::standard_error:
            if (standard_error_is_ours()) write_line(STDERR_FILENO, line);
    }
}

}  // namespace

void remember_standard_error() noexcept {
    if (fstat(STDERR_FILENO, &standard_error_at_load) != 0) standard_error_at_load = {};
}

void write(const Target& target, LogLevel level, std::string_view message) noexcept {
    if (level == LogLevel::none || level > target.level) return;
    const int saved = errno;
    try {
        deliver(target, level, message);
    } catch (...) {  // no memory: nothing can be said
    }
    errno = saved;
}

}  // namespace rdmaquota::provider::log
