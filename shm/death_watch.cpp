#include "shm/death_watch.hpp"

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

#include "shm/directory_watch.hpp"
#include "shm/lock_file.hpp"
#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

constexpr unsigned most_doublings = 8;  // of the time between two attempts

std::uint64_t now_ns() noexcept {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

// One of this user's seats in the ledger, as a mapping that keeps its lock; null when all are taken.
void* take_seat(const std::string& ledger) {
    const auto seats = std::min(DirectoryWatch::most_instances() / DeathWatch::user_share, DeathWatch::most_seats);
    const auto first = geteuid() % (1U << 20) * static_cast<std::uint32_t>(DeathWatch::most_seats);
    const auto file = LockFile::open(data_path(ledger));
    for (std::uint32_t seat = first; file && seat < first + seats; ++seat)
        if (file->try_reap(seat)) return file->hold(seat);
    return nullptr;
}

}  // namespace

// In memory of its own that the kernel clears in a forked child. The child leaves the parent's descriptor open, since
// it cannot know whether it shares the parent's table of descriptors.
struct DeathWatch::State {
    std::atomic<bool> begun;  // false in a forked child
    std::atomic<bool> busy;
    DirectoryWatch watch;
    void* seat;
    unsigned denials;  // since `denials_began`
    std::uint64_t denials_began, last_denial;
    unsigned attempts;  // to begin
    std::uint64_t retry;
    std::uint64_t refreshed;  // when all files were looked at
    std::uint64_t suspects;
    std::uint64_t told[files];  // when a close of each file was last heard of

    bool update(const std::string& ledger) noexcept;
    bool begin(const std::string& ledger) noexcept;
    void end() noexcept;
    void suspect(std::uint64_t closed) noexcept;
};

bool DeathWatch::State::begin(const std::string& ledger) noexcept {
    const auto now = now_ns();
    if (denials <= denials_before || now < retry) return false;
    retry = now + (busy_time << std::min(attempts++, most_doublings));
    try {
        if (!seat) seat = take_seat(ledger);
        if (seat && watch.begin(lock_directory(ledger).c_str())) return suspect(all), true;
    } catch (...) {  // no memory
    }
    end();
    return false;
}

void DeathWatch::State::end() noexcept {
    watch.end();
    LockFile::let_go(std::exchange(seat, nullptr));
}

// After the closes, however long this thread was stopped since.
void DeathWatch::State::suspect(std::uint64_t closed) noexcept {
    const auto now = now_ns();
    suspects |= closed;
    for (std::uint32_t file = 0; file < files; ++file)
        if (closed >> file & 1) told[file] = now;
}

// Whether `suspects` is as of now.
bool DeathWatch::State::update(const std::string& ledger) noexcept {
    if (watch.fd < 0) return begin(ledger);
    std::uint64_t closed = 0;
    const auto news = watch.read_closed(closed);
    if (news == DirectoryWatch::News::lost) end();
    if (news != DirectoryWatch::News::read) return false;
    if (closed != 0) suspect(closed);
    return true;
}

// Null when another thread has it or is about to make it, when there is none, or no memory.
DeathWatch::State* DeathWatch::take_state(bool make) noexcept {
    auto* state = state_.load();
    if (!state && make) {
        void* memory = mmap(nullptr, sizeof(State), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return nullptr;
        auto* fresh = new (memory) State{};
        if (madvise(memory, sizeof(State), MADV_WIPEONFORK) != 0 || !state_.compare_exchange_strong(state, fresh)) {
            munmap(memory, sizeof(State));
            return nullptr;
        }
        state = fresh;
    }
    if (!state || state->busy.exchange(true)) return nullptr;
    if (!state->begun.exchange(true)) state->watch.fd = -1;
    return state;
}

void DeathWatch::count_denial(std::uint32_t slots) noexcept {
    if (slots <= few_slots) return;
    const int error = errno;
    if (auto* state = take_state(true)) {
        const auto now = now_ns();
        if (now - state->denials_began > busy_time) state->denials_began = now, state->denials = 0;
        ++state->denials;
        state->last_denial = now;
        state->busy = false;
    }
    errno = error;
}

DeathWatch::Suspects DeathWatch::suspects(const std::string& ledger) noexcept {
    const int error = errno;
    const auto now = now_ns();
    Suspects found;
    if (auto* state = take_state(false)) {
        if (state->update(ledger)) {
            found.at = now;
            if (now - state->refreshed < refresh) found.files = state->suspects;
        }
        state->busy = false;
    }
    errno = error;
    return found;
}

void DeathWatch::seen_alive(const Suspects& looked, std::uint64_t but_for) noexcept {
    auto* state = looked.watched() ? take_state(false) : nullptr;
    if (!state) return;
    if (looked.files == all) state->refreshed = looked.at;
    for (std::uint32_t file = 0; file < files; ++file)
        if (looked.files >> file & 1 && state->told[file] + settled <= looked.at)
            state->suspects &= ~(std::uint64_t{1} << file);
    if (state->suspects != all) state->attempts = 0, state->retry = 0;  // it lasted
    state->suspects |= but_for;
    state->busy = false;
}

void DeathWatch::end_if_idle(std::uint64_t idle) noexcept {
    auto* state = take_state(false);
    if (!state) return;
    const int error = errno;
    if (state->watch.fd >= 0 && now_ns() - state->last_denial >= idle) {
        state->end();
        state->denials = 0;
    }
    state->busy = false;
    errno = error;
}

DeathWatch::~DeathWatch() {
    auto* state = state_.load();
    if (!state) return;
    if (state->begun) state->end();
    munmap(state, sizeof(State));
}

DeathWatch& DeathWatch::operator=(DeathWatch&& other) noexcept {
    other.state_ = state_.exchange(other.state_);
    return *this;
}

}  // namespace rdmaquota
