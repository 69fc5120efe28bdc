// Whether the kernel still has an open file after its descriptor was closed.
//
// A device's verbs objects live as long as its open file, and that may be longer than its descriptor: queues that are
// still mapped hold it (rxe's do when a program closes the device without destroying them), and so does a forked child
// or an imported context. An open file description lock on one byte lives and dies with the file (fcntl(2)).
//
// Everybody who may open the device may lock it. So only a lock of exactly our byte counts: ours is a write lock, so
// any other lock over that byte proves that ours is gone.
#pragma once

#include <cstdint>

#include <sys/stat.h>

namespace rdmaquota::provider {

class FileWatch {
public:
    // Marks the open file behind `fd`. `device_file` is the name that it should have. Waits up to about
    // 20 ms for the lock of somebody else. False: it cannot be marked. The file of a device that was unplugged is taken to be
    // released.
    bool begin(int fd, const char* device_file) noexcept;

    // False when `begin` was not called, or the kernel has released the file. True also when that cannot be found out
    // for want of descriptors or permission, and when it could not be marked: ask the others then.
    bool is_open() const noexcept;

    // Whether `begin` could not mark the file. Others may lock the device's file all the time, and an honest program must not pay
    // for that for ever: what this process has of the device's file then tells whether it may be open.
    bool is_blind() const noexcept { return state_ == State::blind; }
    bool is_mapped() const noexcept;
    // `is_known`: whether a descriptor is that of an open context.
    bool has_stray_descriptor(bool (*is_known)(int fd)) const noexcept;

private:
    enum class State : std::uint8_t { unused, watching, blind };

    bool find_path(int fd, const struct stat& opened, const char* device_file) noexcept;
    bool lock(int fd) const noexcept;
    bool is_marked() const noexcept;

    State state_ = State::unused;
    char path_[64] = {};
    std::int64_t byte_ = 0;
    dev_t device_ = 0;  // of the file, with its inode
    ino_t inode_ = 0;
};

}  // namespace rdmaquota::provider
