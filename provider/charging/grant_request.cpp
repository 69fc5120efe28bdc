#include "provider/charging/grant_request.hpp"

#include <ctime>

#include "provider/host/sidecar_request.hpp"
#include "shm/atomic.hpp"
#include "shm/ledger/ledger_gates.hpp"

namespace rdmaquota::provider {

std::uint64_t monotonic_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

// Of the tenant's own device, although the limit may be for the sum of all: the sidecar adds them up.
bool ask_for_share(Account& account, std::uint32_t device, const Denial& denial, std::uint64_t deadline_ns) noexcept {
    const auto now = monotonic_ns();
    if (now >= deadline_ns) return false;
    auto& ledger = account.ledger();
    auto& word = ledger.demand(device, denial.resource);
    auto before = load(word);
    const auto wanted = ledger.gate(device, denial.resource) + denial.requested;
    while (!compare_exchange(word, before, next_demand(before, wanted))) {
    }
    ask_for_grant(account.directory(), account.tenant(), static_cast<int>((deadline_ns - now + 999'999) / 1'000'000));
    return true;
}

}  // namespace rdmaquota::provider
