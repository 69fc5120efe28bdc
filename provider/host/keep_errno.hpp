// Puts errno back, so that the program sees what the real op left there.
#pragma once

#include <cerrno>

namespace rdmaquota::provider {

class KeepErrno {
public:
    KeepErrno() noexcept : saved_(errno) {}
    ~KeepErrno() { errno = saved_; }
    KeepErrno(const KeepErrno&) = delete;

private:
    int saved_;
};

}  // namespace rdmaquota::provider
