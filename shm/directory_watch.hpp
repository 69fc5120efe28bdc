// Which numbered files of one directory are closed, as inotify(7) tells it, in a program that knows nothing of this.
//
// The host program owns its descriptors: at any time it may close this one, or have something else by its number. So
// the kernel is asked before each use whose the descriptor is (proc_pid_fdinfo(5)), and what is read is a duplicate, of
// which it was asked as well: no other file is ever read. Between answer and use there is a race that cannot be closed:
// when another thread reuses the number just then, a duplicate of that file is closed, which lets go of the program's
// fcntl(2) locks on it, or at the end of the watch the file itself. Hence the number is a high one where the program
// may have one.
//
// A program under a seccomp filter gets no watch, since the filter may end it for a system call that it does not
// expect. When one thread sets a filter for all while another begins a watch, nothing prevents that. A watch that has
// begun uses no system calls that the provider does not use elsewhere, but for ioctl's FIONREAD.
//
// One thread at a time; each function changes errno.
#pragma once

#include <cstdint>

namespace rdmaquota {

struct DirectoryWatch {
    int fd = -1;                          // -1: there is none
    unsigned long inode = 0, device = 0;  // of the directory, as fdinfo has them

    // How many inotify instances all programs of this user may have; 0 where that cannot be read.
    static unsigned long most_instances() noexcept;

    // False when kernel or limits refuse; then nothing is left behind.
    bool begin(const char* directory) noexcept;

    // `lost`: the descriptor is not ours, events were lost, or they come too fast. `unknown`: /proc does not tell, or
    // there is no descriptor for the duplicate.
    enum class News : std::uint8_t { read, lost, unknown };
    // Puts into `closed` the files with the names 00 to 63 that were closed since the last call after they had been
    // open for writing, a bit each.
    News read_closed(std::uint64_t& closed) const noexcept;

    // Closes the descriptor if it is ours still.
    void end() noexcept;

private:
    enum class Whose : std::uint8_t { ours, not_ours, unknown };
    Whose whose(int descriptor) const noexcept;
};

}  // namespace rdmaquota
