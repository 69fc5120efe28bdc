#include "shm/mapping.hpp"

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rdmaquota {

// Read in the handler: see BusErrorsAllowed::thread.
[[gnu::tls_model("initial-exec")]] static constinit thread_local BusErrorsAbsorbed* absorbing = nullptr;

bool absorb(void* address) noexcept {
    if (!absorbing) return false;
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    auto* begin = reinterpret_cast<void*>(reinterpret_cast<std::uintptr_t>(address) & ~(page - 1));
    absorbing->any_ = true;
    return mmap(begin, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

namespace {

std::atomic<GuardedRange*> ranges{nullptr};
struct sigaction previous;

GuardedRange* range_of(const void* address) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    for (auto* range = ranges.load(); range; range = range->next) {
        const auto begin = range->begin.load();
        if (begin != 0 && at >= begin && at - begin < range->bytes.load()) return range;
    }
    return nullptr;
}

// Async-signal-safe: mmap(2) is a plain system call.
bool replace(GuardedRange& range) noexcept {
    auto* begin = reinterpret_cast<void*>(range.begin.load());
    const auto bytes = range.bytes.load();
    void* fresh = mmap(begin, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
    if (fresh == MAP_FAILED) return false;
    if (const void* copy = range.copy.load()) std::memcpy(begin, copy, bytes);
    range.lost = true;
    return true;
}

bool sent(const siginfo_t& info) noexcept { return info.si_code <= 0; }

// Does what would have happened without us. After the handler returns, a fault happens again, now with the default
// action.
void pass_on(int signal, siginfo_t* info, void* context) noexcept {
    const auto once = previous;
    if (static_cast<unsigned>(previous.sa_flags) & SA_RESETHAND)
        previous = {};  // the next one meets the default action
    if (once.sa_flags & SA_SIGINFO) return once.sa_sigaction(signal, info, context);
    const bool ignored = once.sa_handler == SIG_IGN;
    if (once.sa_handler != SIG_DFL && !ignored) return once.sa_handler(signal);
    if (ignored && sent(*info)) return;
    struct sigaction plain {};
    plain.sa_handler = SIG_DFL;
    sigaction(signal, &plain, nullptr);
    if (sent(*info)) raise(signal);  // blocked until this handler returns
}

void on_bus_error(int signal, siginfo_t* info, void* context) noexcept {
    const int saved = errno;
    auto* range = sent(*info) ? nullptr : range_of(info->si_addr);
    const bool survived = range ? replace(*range) : !sent(*info) && absorb(info->si_addr);
    errno = saved;
    if (!survived) pass_on(signal, info, context);
}

// Once per process; a forked child inherits it. Keeps flags and mask of the previous handler, such as SA_ONSTACK in a
// Go program.
void install_handler() noexcept {
    static const bool installed = [] {
        if (sigaction(SIGBUS, nullptr, &previous) != 0) return false;
        const bool handled = previous.sa_flags & SA_SIGINFO ||
                             (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN);
        struct sigaction ours {};
        if (handled) ours = previous;
        ours.sa_sigaction = on_bus_error;
        ours.sa_flags = (ours.sa_flags & ~static_cast<int>(SA_RESETHAND)) | SA_SIGINFO | SA_ONSTACK;
        return sigaction(SIGBUS, &ours, nullptr) == 0;
    }();
    static_cast<void>(installed);
}

GuardedRange* free_range() noexcept {
    for (auto* range = ranges.load(); range; range = range->next)
        if (!range->taken.exchange(true)) return range;
    auto* fresh = new (std::nothrow) GuardedRange;
    if (!fresh) return nullptr;
    fresh->next = ranges.load();
    while (!ranges.compare_exchange_weak(fresh->next, fresh)) {
    }
    return fresh;
}

void release_range(GuardedRange& range) noexcept {
    range.begin = 0;
    ::operator delete(const_cast<void*>(range.copy.exchange(nullptr)));
    range.lost = false;
    range.taken = false;
}

}  // namespace

// Takes the copy under the guard, since the file may be cut short while it is copied.
Mapping Mapping::map(int fd, std::size_t bytes, bool writable, AfterLoss after_loss) noexcept {
    Mapping mapping;
    const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
    void* address = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
    if (address == MAP_FAILED) return mapping;
    mapping.address_ = address;
    mapping.bytes_ = bytes;
    struct stat status {};
    if (fstat(fd, &status) == 0) {
        mapping.device_ = status.st_dev;
        mapping.inode_ = status.st_ino;
    }
    install_handler();
    mapping.range_ = free_range();
    if (!mapping.range_) return mapping;
    mapping.range_->bytes = bytes;
    mapping.range_->begin = reinterpret_cast<std::uintptr_t>(address);
    if (after_loss == AfterLoss::zeroes) return mapping;
    if (void* copy = ::operator new(bytes, std::nothrow)) {
        std::memcpy(copy, address, bytes);
        mapping.range_->copy = copy;
    }
    return mapping;
}

Mapping::Mapping(Mapping&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)),
      bytes_(other.bytes_),
      device_(other.device_),
      inode_(other.inode_),
      range_(std::exchange(other.range_, nullptr)) {}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
    std::swap(address_, other.address_);
    std::swap(bytes_, other.bytes_);
    std::swap(device_, other.device_);
    std::swap(inode_, other.inode_);
    std::swap(range_, other.range_);
    return *this;
}

// Drops the guard before the memory, so that it never covers memory that others have mapped by then.
Mapping::~Mapping() {
    if (range_) release_range(*range_);
    if (address_) munmap(address_, bytes_);
}

bool Mapping::is_of(const char* path) const noexcept {
    struct stat status {};
    return stat(path, &status) == 0 && status.st_dev == device_ && status.st_ino == inode_;
}

constinit thread_local unsigned BusErrorsAllowed::depth = 0;
constinit thread_local bool BusErrorsAllowed::was_blocked = false;

// By the system call itself, whose set is one word (rt_sigprocmask(2)): the C library's sets of 128 bytes and its calls for them
// are three quarters of the instructions.
static constexpr std::uint64_t bus_error = 1ULL << (SIGBUS - 1);

void BusErrorsAllowed::unblock() noexcept {
    std::uint64_t before = 0;
    ::syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &bus_error, &before, sizeof before);
    was_blocked = (before & bus_error) != 0;
}

void BusErrorsAllowed::block() noexcept {
    ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &bus_error, nullptr, sizeof bus_error);
}

BusErrorsAbsorbed::BusErrorsAbsorbed() noexcept {
    install_handler();
    sigset_t bus_error;
    sigemptyset(&bus_error);
    sigaddset(&bus_error, SIGBUS);
    pthread_sigmask(SIG_UNBLOCK, &bus_error, &before_);
    absorbing = this;
}

BusErrorsAbsorbed::~BusErrorsAbsorbed() {
    absorbing = nullptr;
    pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace rdmaquota
