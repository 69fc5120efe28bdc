// A shared file mapping that outlives its file's truncation.
//
// Every process that may charge a ledger can also cut its file short, and so does an administrator's slip
// (`> policy`). Each access beyond the new end then raises SIGBUS, which ends programs. This cannot be
// prevented: files on tmpfs take no seals (fcntl(2), F_ADD_SEALS: memfds only), a sealed memfd needs a
// daemon that hands it out, and a check before each access comes too early. So there is a handler for
// SIGBUS, the only signal handler of rdmaquota: on a fault within a Mapping it maps private memory over
// it, marks it as lost and lets the access go on. It passes everything else to the previous handler or
// the default action.
//
// Not covered: programs that install a SIGBUS handler of their own later and do not pass on faults that
// are not theirs. The kernel kills a thread that faults while it blocks SIGBUS, hence BusErrorsAllowed.
#pragma once

#include <atomic>
#include <csignal>
#include <cstddef>
#include <cstdint>

#include <sys/types.h>

namespace rdmaquota {

// What the handler knows about a Mapping. Never freed, since a handler may be walking the list; a range that is not
// taken is reused by the next mapping.
struct GuardedRange {
    std::atomic<std::uintptr_t> begin{0};
    std::atomic<std::size_t> bytes{0};
    std::atomic<const void*> copy{nullptr};  // `bytes` long: what to show after a loss
    std::atomic<bool> lost{false};
    std::atomic<bool> taken{true};
    GuardedRange* next = nullptr;
};

// Move-only; unmaps when destroyed. An empty one has no address.
class Mapping {
public:
    enum class AfterLoss : unsigned char {
        zeroes,
        as_mapped,  // what the file held when it was mapped
    };

    // Maps `bytes` of the file from its start. Empty on failure, with errno set.
    static Mapping map(int fd, std::size_t bytes, bool writable, AfterLoss after_loss) noexcept;

    Mapping() noexcept = default;
    Mapping(Mapping&& other) noexcept;
    Mapping& operator=(Mapping&& other) noexcept;
    Mapping(const Mapping&) = delete;
    ~Mapping();

    explicit operator bool() const noexcept { return address_ != nullptr; }
    void* address() const noexcept { return address_; }

    // What will be shown once the file is cut short, to be changed before the mapping is used; null for zeroes.
    void* shown_after_loss() const noexcept { return range_ ? const_cast<void*>(range_->copy.load()) : nullptr; }

    // Whether `path` is the file that was mapped.
    bool is_of(const char* path) const noexcept;

    // True when the file was cut short; the mapping is this process's own memory since then.
    bool lost() const noexcept { return range_ && range_->lost.load(std::memory_order_relaxed); }

private:
    void* address_ = nullptr;
    std::size_t bytes_ = 0;
    dev_t device_ = 0;  // of the file, with its inode
    ino_t inode_ = 0;
    GuardedRange* range_ = nullptr;
};

// While it lives, this thread takes SIGBUS. They nest: the outermost restores what the thread had. That costs a system call, and
// one more where the thread blocks SIGBUS: a thread may block it at any time, and nothing but the kernel knows.
class BusErrorsAllowed {
public:
    BusErrorsAllowed() noexcept {
        if (depth++ == 0) unblock();
    }
    ~BusErrorsAllowed() {
        if (--depth == 0 && was_blocked) [[unlikely]]
            block();
    }
    BusErrorsAllowed(const BusErrorsAllowed&) = delete;

private:
    static void unblock() noexcept;
    static void block() noexcept;

    // At a fixed offset from the thread pointer, so that looking takes no call. The C library keeps room for such
    // variables of libraries that are loaded later (TLS, "static surplus").
    [[gnu::tls_model("initial-exec")]] static constinit thread_local unsigned depth;
    [[gnu::tls_model("initial-exec")]] static constinit thread_local bool was_blocked;
};

// While it lives, this thread survives bus errors in mappings of others too: private memory takes the page's place. For
// code that writes a new file through a mapping of its own, whose file system may be full by then.
class BusErrorsAbsorbed {
public:
    BusErrorsAbsorbed() noexcept;
    ~BusErrorsAbsorbed();
    BusErrorsAbsorbed(const BusErrorsAbsorbed&) = delete;

    // Whether there was one: what was written did not get to its file.
    bool any() const noexcept { return any_; }

private:
    friend bool absorb(void* address) noexcept;  // the handler's
    bool any_ = false;
    sigset_t before_;  // the thread's signals
};

}  // namespace rdmaquota
