// Which owners of a ledger may have ended, as the kernel tells, so that a denial need not ask after each of 4,000.
//
// An owner's end closes its lock file (shm/lock_file.hpp), which it had open for writing; those who only test locks
// open it for reading. So a lock file that nobody closed has the same living owners as at the last look at it, and
// those that have claimed a slot since.
//
// The kernel tells of a close a moment before it ends the file's locks. Therefore a file stays suspect until a look
// `settled` after its last close finds all its owners alive; so do all files after the watch began. All are looked at
// again every `refresh`, for the case that the kernel paused in that moment for longer than `settled`.
//
// The watch begins once it pays: in a ledger of many slots, for a process that is denied again and again. It takes one
// of the user's inotify instances, of which 128 are usual, and a descriptor (shm/directory_watch.hpp). Of the
// instances, the processes of one user in one ledger take an eighth at most: each that watches locks a seat, by a range
// of the ledger's file that nobody reads or writes, and keeps it as an owner keeps its lock. A forked child shares the
// queue of its parent's instance and must not read it: it begins anew, and holds the seat as long as the instance. A
// process that is no longer denied gives both back, at the next call of `end_if_idle`.
//
// Any thread. While one is in here, the others go without a watch.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "shm/ledger/layout.hpp"

namespace rdmaquota {

class DeathWatch {
public:
    static constexpr std::uint32_t files = owner_slots / owners_per_lock_file;
    static_assert(files == 64);
    static constexpr std::uint64_t all = UINT64_MAX;
    static constexpr std::uint64_t settled = 500'000'000, refresh = 2'000'000'000;  // ns
    static constexpr std::uint32_t few_slots = 256;                                 // are looked at as fast
    static constexpr unsigned denials_before = 3;               // within `busy_time`, before the watch begins
    static constexpr std::uint64_t busy_time = 10'000'000'000;  // ns; and between two attempts to begin, more each time
    static constexpr std::uint64_t idle_time = 30'000'000'000;  // ns without a denial
    static constexpr unsigned long user_share = 8, most_seats = 64;  // of instances, one in so many; and at most

    DeathWatch() = default;
    DeathWatch(DeathWatch&& other) noexcept : state_(other.state_.exchange(nullptr)) {}
    DeathWatch& operator=(DeathWatch&& other) noexcept;
    ~DeathWatch();

    // Call it once for each denial that may need a look, in a ledger of which `slots` were used so far.
    void count_denial(std::uint32_t slots) noexcept;

    struct Suspects {
        std::uint64_t files = all;  // a bit for each lock file
        std::uint64_t at = 0;       // ns; when that was found out
        bool watched() const noexcept { return at != 0; }
    };
    // The lock files of which an owner may have ended before this call: all without a watch. `ledger` is its directory.
    // Keeps errno.
    Suspects suspects(const std::string& ledger) noexcept;

    // After that call all owners of these files were seen alive, but for some owners of the files in `but_for`.
    void seen_alive(const Suspects& looked, std::uint64_t but_for) noexcept;

    // Ends the watch when the last denial was so long ago; cheap when there is none. Keeps errno.
    void end_if_idle(std::uint64_t idle = idle_time) noexcept;

private:
    struct State;
    State* take_state(bool make) noexcept;
    std::atomic<State*> state_ = nullptr;
};

}  // namespace rdmaquota
