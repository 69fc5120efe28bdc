// The text of /proc/PID/maps, by a child process.
//
// The kernel holds a process's address space while it reads this file, and a process can have it held for as long as it likes:
// by a mapping of a file of its own FUSE mount that is never answered, for example. The reader then sleeps in the kernel until it
// is killed. So a child reads; it is killed when nothing has come from it for a second, and that process is not asked again.
//
// Reading takes a twentieth of the time at most, for each user (the real one) and for all: a second of one user's processes, or
// three seconds in all, may be taken at once. Beyond that nobody is asked. What is read within two milliseconds is free. So a caller
// that asks for any number of processes waits for little more than four seconds. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include <sys/types.h>

namespace rdmaquota {

class MapsReader {
public:
    using Clock = std::chrono::steady_clock;

    struct Maps {
        std::string text;                 // empty where it may not be read, or the process has ended
        std::chrono::nanoseconds cost{};  // CPU time that reading took
    };

    MapsReader() = default;
    MapsReader(const MapsReader&) = delete;
    ~MapsReader();

    // `directory` is a process's or a thread's, such as "/proc/7" or "/proc/7/task/8". None: the process was silent, or is not asked;
    // nothing is known of its mappings then.
    std::optional<Maps> read(const std::string& directory);

    // How often it waited in vain.
    std::size_t silences() const noexcept { return silences_; }

private:
    struct Process {
        std::uint64_t start = 0;  // in clock ticks since boot
        uid_t user = 0;
    };
    bool may_ask(const std::string& directory, const Process& process);
    bool begin_child();
    std::optional<Maps> receive();
    void pay(const Process& process, Clock::duration waited);
    void note_silence(const std::string& directory, const Process& process);
    void end();

    pid_t child_ = -1;
    int socket_ = -1;
    std::set<std::pair<std::string, std::uint64_t>> silent_;  // directory and start
    std::size_t silences_ = 0;
    // The time that reading took, times twenty, is paid then: of a user's processes, and of all.
    std::map<uid_t, Clock::time_point> user_paid_;
    Clock::time_point all_paid_{};
};

// By the one reader of this process.
std::optional<MapsReader::Maps> read_maps(const std::string& directory);

}  // namespace rdmaquota
