// A descriptor that is closed with its owner, which drops the locks that were taken through it.
#pragma once

#include <utility>

#include <unistd.h>

namespace rdmaquota {

class OpenFile {
public:
    explicit OpenFile(int fd = -1) noexcept : fd_(fd) {}
    OpenFile(OpenFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    OpenFile& operator=(OpenFile&& other) noexcept {
        std::swap(fd_, other.fd_);
        return *this;
    }
    OpenFile(const OpenFile&) = delete;
    ~OpenFile() {
        if (fd_ >= 0) ::close(fd_);
    }
    int fd() const noexcept { return fd_; }
    explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    int fd_;
};

}  // namespace rdmaquota
