// Child processes of tests. What cannot be started, or signalled, is an exception that says why: kill() with a pid that
// never was would end the whole test run (0) or every process of the machine (-1). test/house.py finds bare calls.
#pragma once

#include <cerrno>
#include <csignal>
#include <stdexcept>
#include <string>
#include <system_error>
#include <utility>

#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

// As fork(2); never returns -1.
inline pid_t fork_child() {
    const pid_t child = fork();
    if (child < 0) throw std::system_error(errno, std::generic_category(), "fork");
    return child;
}

// Sends a signal to one process; false when there is none of that number. Throws for a pid below 1.
inline bool signal_process(pid_t pid, int signal) {
    if (pid < 1) throw std::invalid_argument("no signal may be sent to pid " + std::to_string(pid));
    return kill(pid, signal) == 0;
}

// Waits for a child's end and returns its status as waitpid(2) does. Throws for a pid below 1.
inline int wait_for_child(pid_t pid) {
    if (pid < 1) throw std::invalid_argument("no child has pid " + std::to_string(pid));
    int status = 0;
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "waitpid");
    return status;
}

// Kills a child and waits for it.
inline int kill_child(pid_t pid) {
    signal_process(pid, SIGKILL);
    return wait_for_child(pid);
}

// A child that runs `body` and then ends with status 0, or 1 after an exception. Killed when destroyed, unless
// it was waited for.
class ChildProcess {
public:
    template <class Body>
    explicit ChildProcess(Body&& body) : pid_(fork_child()) {
        if (pid_ != 0) return;
        try {
            body();
        } catch (...) {
            _exit(1);
        }
        _exit(0);
    }
    ChildProcess(const ChildProcess&) = delete;
    ~ChildProcess() {
        if (pid_ > 0) kill_child(pid_);
    }

    pid_t pid() const noexcept { return pid_; }
    // Both return the status as waitpid(2) does.
    int wait() { return wait_for_child(std::exchange(pid_, 0)); }
    int end() { return kill_child(std::exchange(pid_, 0)); }

private:
    pid_t pid_ = 0;
};
