// Whether the kernel still has an open file after its descriptor was closed.
//
// A device's verbs objects live as long as its open file, and that may be longer than its descriptor:
// queues that are still mapped hold it (rxe's are when a program closes the device without destroying
// them), and so does a forked child or an imported context. A lock on a byte of the file's own lives
// and dies with it (OFD locks: fcntl(2)); libibverbs and the kernel's uverbs take no such locks.
#pragma once

#include <cstdint>

namespace rdmaquota::provider {

class FileWatch {
public:
    // Marks the open file behind `fd`. Nothing is watched when that is not possible.
    void begin(int fd) noexcept;

    // True from a successful `begin` until the kernel has released the file, and also when that
    // cannot be found out for want of descriptors or permission.
    bool is_open() const noexcept;

private:
    char path_[64] = {};  // of the device node; empty: nothing is watched
    std::int64_t byte_ = 0;
};

}  // namespace rdmaquota::provider
