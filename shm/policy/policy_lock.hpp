// Who may change the running policy.
//
// There is one writer at a time. It holds a lock on DIR/policy.lock, a file that only the directory's owner can
// open: a reader can neither hold that lock nor wait for it. (Anyone may open the policy itself, and a descriptor
// that can read is enough for a lock on it.) The kernel drops the lock of a killed writer.
#pragma once

#include <chrono>
#include <string>
#include <utility>

#include "policy/result.hpp"

namespace rdmaquota {

// The right to change or replace the policy at a path. Move-only; given up when destroyed.
class PolicyLock {
public:
    static constexpr std::chrono::milliseconds default_patience{5000};

    // Waits up to `patience` for another writer, which may have been stopped. Creates the lock file when there is none.
    static Result<PolicyLock> take(const std::string& policy_path,
                                   std::chrono::milliseconds patience = default_patience);

    PolicyLock(PolicyLock&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    PolicyLock& operator=(PolicyLock&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    PolicyLock(const PolicyLock&) = delete;
    ~PolicyLock();

private:
    explicit PolicyLock(int fd) noexcept : fd_(fd) {}
    int fd_ = -1;
};

}  // namespace rdmaquota
