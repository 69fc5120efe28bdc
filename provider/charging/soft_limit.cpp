#include "provider/charging/soft_limit.hpp"

#include <ctime>

#include "shm/atomic.hpp"

namespace rdmaquota::provider {
namespace {

std::uint64_t boot_ns() noexcept {
    timespec now{};
    clock_gettime(CLOCK_BOOTTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

// The time is read before the usage, and is only replaced when it is still the same: so a thread that was stopped between
// the two cannot give others a second grace period.
std::uint64_t limit_now(Ledger& ledger, std::uint32_t device, Resource resource, std::uint64_t amount,
                        const SoftLimit& limit) noexcept {
    if (limit.soft >= limit.hard) return limit.hard;
    auto& word = ledger.soft_since(device, resource);
    auto since = load(word);
    const auto used = ledger.gate(device, resource);
    if (used + amount <= limit.soft) return limit.soft;
    const auto now = boot_ns();
    if (used <= limit.soft || since == 0 || since > now) {
        compare_exchange(word, since, now);
        return limit.hard;
    }
    return now - since < std::uint64_t{limit.grace_s} * 1'000'000'000 ? limit.hard : limit.soft;
}

}  // namespace rdmaquota::provider
