// The text of /proc/PID/maps, by a child process.
//
// The kernel holds a process's address space while it reads this file, and a process can have it held for as long as it likes:
// by a mapping of a file of its own FUSE mount that is never answered, for example. The reader then sleeps in the kernel until it
// is killed. So a child reads; it is killed when nothing has come from it for two seconds.
//
// A process that was silent is not asked again, and no process of its user (the real one) for a minute. Waiting for silent
// processes takes a twentieth of the time at most: beyond that nobody is asked. One thread.
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
    void note_silence(const std::string& directory, const Process& process, Clock::duration waited);
    void end();

    pid_t child_ = -1;
    int socket_ = -1;
    std::set<std::pair<std::string, std::uint64_t>> silent_;  // directory and start
    std::map<uid_t, Clock::time_point> asked_from_;         // users of silent processes
    std::size_t silences_ = 0;
    Clock::time_point paid_until_{};                        // for the time that silent processes took, times twenty
};

// By the one reader of this process.
std::optional<MapsReader::Maps> read_maps(const std::string& directory);

}  // namespace rdmaquota
