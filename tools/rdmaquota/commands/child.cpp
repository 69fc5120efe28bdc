#include "tools/rdmaquota/commands/child.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <iterator>
#include <optional>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

constexpr int forwarded[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2};

// Blocks the signals that we forward, to read them from a descriptor. restore() gives the child what we inherited.
class Signals {
public:
    Signals() {
        sigemptyset(&waited_);
        sigaddset(&waited_, SIGCHLD);
        for (const int signal : forwarded) sigaddset(&waited_, signal);
        ::sigprocmask(SIG_BLOCK, &waited_, &inherited_);
        // An ignored SIGCHLD would let the kernel throw the child's status away.
        struct sigaction standard {};
        standard.sa_handler = SIG_DFL;
        ::sigaction(SIGCHLD, &standard, &inherited_child_);
        descriptor_ = ::signalfd(-1, &waited_, SFD_CLOEXEC | SFD_NONBLOCK);
    }
    Signals(const Signals&) = delete;
    ~Signals() { ::close(descriptor_); }

    void restore() const {
        ::sigaction(SIGCHLD, &inherited_child_, nullptr);
        ::sigprocmask(SIG_SETMASK, &inherited_, nullptr);
    }

    int descriptor() const { return descriptor_; }

    // The next signal; none where none has come.
    std::optional<signalfd_siginfo> next() const {
        signalfd_siginfo info{};
        return ::read(descriptor_, &info, sizeof info) == sizeof info ? std::optional(info) : std::nullopt;
    }

private:
    int descriptor_ = -1;
    sigset_t waited_;
    sigset_t inherited_;
    struct sigaction inherited_child_ {};
};

[[noreturn]] void exec_program(const std::vector<std::string>& program, int report) {
    std::vector<char*> arguments;
    for (const auto& argument : program) arguments.push_back(const_cast<char*>(argument.c_str()));
    arguments.push_back(nullptr);
    ::execvp(arguments[0], arguments.data());
    const int error = errno;
    (void)!::write(report, &error, sizeof error);
    ::_exit(127);
}

// Waits until the program runs, when exec closes the descriptor, or the child has reported why it does not.
int exec_error_from(int report) {
    int error = 0;
    ssize_t got = 0;
    do got = ::read(report, &error, sizeof error);
    while (got < 0 && errno == EINTR);
    return got == static_cast<ssize_t>(sizeof error) ? error : 0;
}

// Reaps every child that has ended. True when `child` was among them.
bool collect(pid_t child, ChildEnd& end) {
    bool found = false;
    int status = 0;
    pid_t pid = 0;
    while ((pid = ::waitpid(-1, &status, WNOHANG)) > 0) {
        if (pid != child) continue;
        found = true;
        if (WIFSIGNALED(status)) end.signal = WTERMSIG(status);
        if (WIFEXITED(status)) end.status = WEXITSTATUS(status);
    }
    end.descendants_live = pid == 0;
    return found;
}

void wait_for(pid_t child, const Signals& signals, const Watch& watch, ChildEnd& end) {
    int pause_ms = -1;
    while (!collect(child, end)) {
        pollfd events[] = {{signals.descriptor(), POLLIN, 0}, {watch.descriptor, POLLIN, 0}};
        const int ready = ::poll(events, std::size(events), pause_ms);
        if (ready == 0 || (ready > 0 && events[1].revents != 0)) pause_ms = watch.look();
        // The kernel has already sent the terminal's signals to the whole foreground group.
        while (const auto signal = signals.next())
            if (signal->ssi_signo != SIGCHLD && signal->ssi_code != SI_KERNEL) ::kill(child, static_cast<int>(signal->ssi_signo));
    }
}

}  // namespace

Result<ChildEnd> run_child(const std::vector<std::string>& program, const Watch& watch) {
    const auto failed = [](const char* what) {
        return Error{fmt::format("cannot {}: {}", what, std::strerror(errno))};
    };
    // Orphaned descendants become our children, so that we know whether any are left.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1UL, 0UL, 0UL, 0UL);
    int report[2];
    if (::pipe2(report, O_CLOEXEC) != 0) return failed("make a pipe");
    const Signals signals;
    const pid_t child = ::fork();
    if (child == 0) {
        signals.restore();
        exec_program(program, report[1]);
    }
    if (child < 0) return failed("start a process");
    ::close(report[1]);
    ChildEnd end;
    end.exec_error = exec_error_from(report[0]);
    ::close(report[0]);
    wait_for(child, signals, watch, end);
    return end;
}

void die_by(int signal) {
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);  // the program has dumped its own
    ::signal(signal, SIG_DFL);
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, signal);
    ::raise(signal);
    ::sigprocmask(SIG_UNBLOCK, &one, nullptr);
    ::_exit(128 + signal);
}

}  // namespace rdmaquota
