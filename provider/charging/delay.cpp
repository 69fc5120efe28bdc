#include "provider/charging/delay.hpp"

#include <array>
#include <atomic>

#include <unistd.h>

#include "policy/text.hpp"
#include "provider/charging/denial.hpp"
#include "provider/charging/repeats.hpp"
#include "provider/host/log_target.hpp"

namespace rdmaquota::provider {
namespace {

// What one rate did to this process; a forked child begins anew.
struct Delayed {
    std::atomic<std::uint32_t> pid{0};
    std::atomic<std::uint64_t> ns{0}, said_ns{0}, said_s{0};
    std::atomic<std::uint64_t> event{0};  // see count_or_record
};
std::array<Delayed, rate_count> delayed;

Delayed& delayed_by(Resource rate) noexcept {
    auto& of = delayed[rate_index(rate)];
    const auto self = static_cast<std::uint32_t>(getpid());
    if (of.pid.exchange(self) != self) of.ns = of.said_ns = of.said_s = of.event = 0;
    return of;
}

// Whether a line is due, and then for how long calls were delayed since the last one.
std::uint64_t take_line(Delayed& of) noexcept {
    constexpr std::uint64_t second_ns = 1'000'000'000;
    const auto now_s = monotonic_s();
    const auto since = of.ns - of.said_ns;
    if (since < second_ns || (of.said_s != 0 && now_s - of.said_s < quiet_s)) return 0;
    of.said_s = now_s;
    of.said_ns += since;
    return since;
}

}  // namespace

void report_delay(Account& account, std::uint32_t device_index, DeviceKey device, const Denial& delay) {
    auto& of = delayed_by(delay.resource);
    auto so_far = delay;
    so_far.used = of.ns += delay.used;
    const auto who = identity_of_self();
    const auto reason = reason_of(account.policy(), device, delay);
    auto event = event_of(device_index, so_far, Mode::enforce, 0, reason, who);
    event.kind = EventKind::delayed;
    count_or_record(account.ledger(), of.event, event);
    const auto ns = take_line(of);
    if (ns != 0)
        say(LogLevel::warning, text("{} on {}: calls of pid {} ({}) were delayed by {}.{} s in all, since {} may have {} a second{}",
                                    info(delay.resource).name, device.name, who.pid, who.comm, ns / 1'000'000'000, ns / 100'000'000 % 10,
                                    holder_word(delay, account.tenant()), format_amount(delay.resource, delay.limit),
                                    delay.total ? " over all devices" : ""));
}

}  // namespace rdmaquota::provider
