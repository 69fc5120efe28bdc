// A process kills or stops itself at a failpoint, between two writes to the ledger.
#include "shm/failpoint.hpp"

#include <atomic>
#include <csignal>

#include "storm.hpp"

namespace {

std::atomic<std::uint64_t> passed{0};
std::atomic<std::uint64_t> target{0};
int signal_at_target = 0;

}  // namespace

namespace rdmaquota {

void failpoint(const char*) noexcept {
    if (++passed == target) std::raise(signal_at_target);
}

}  // namespace rdmaquota

void storm::aim(int signal, std::uint64_t nth) {
    passed = 0;
    signal_at_target = signal;
    target = nth;
}
