// What coordinator and agent have in common: a mailbox that hands what gRPC's threads received to the program's one thread, the clock,
// the signals that end it, and certificates.
#pragma once

#include <poll.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "tools/cluster/core/ports.hpp"

namespace rdmaquota::cluster {

class Mailbox {
public:
    Mailbox() : fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}
    Mailbox(const Mailbox&) = delete;
    ~Mailbox() { ::close(fd_); }

    // Any thread.
    void post(std::function<void()> letter) {
        const std::lock_guard lock(mutex_);
        letters_.push_back(std::move(letter));
        const std::uint64_t one = 1;
        (void)!::write(fd_, &one, sizeof one);
    }
    int fd() const noexcept { return fd_; }
    // The program's thread: runs what was posted.
    void run() {
        std::uint64_t count;
        (void)!::read(fd_, &count, sizeof count);
        std::vector<std::function<void()>> letters;
        {
            const std::lock_guard lock(mutex_);
            letters.swap(letters_);
        }
        for (auto& letter : letters) letter();
    }

private:
    int fd_;
    std::mutex mutex_;
    std::vector<std::function<void()>> letters_;
};

// A descriptor that becomes readable when SIGTERM or SIGINT asks the program to end. Threads that begin later block both signals.
inline int end_signals() {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    return ::signalfd(-1, &signals, SFD_CLOEXEC);
}

class SteadyClock : public Clock {
public:
    Time now() override { return std::chrono::steady_clock::now().time_since_epoch(); }
};

// Where a program's certificate is, and those whose certificates it accepts: ca.pem, cert.pem and key.pem in one directory.
struct Certificates {
    std::string ca, certificate, key;  // PEM texts
    static Result<Certificates> read(const std::string& directory);
};

// The name that a coordinator's certificate must have, as a DNS name, so that no node can pass for one.
inline constexpr const char* coordinator_name = "rdmaquota-coordinator";

}  // namespace rdmaquota::cluster
