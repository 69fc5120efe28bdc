// Waiting where a rate holds (shm/ledger/pace.hpp). A call takes its part of all rates first and then waits once, for
// the slowest, with no lock held and nothing charged.
#include <algorithm>
#include <bit>
#include <ctime>

#include "provider/charging/context.hpp"
#include "provider/charging/delay.hpp"
#include "provider/charging/denial.hpp"
#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {
namespace {

constexpr std::uint64_t second_ns = 1'000'000'000;

// A signal's handler runs, and then the wait goes on, as the real call's would. Where a filter of system calls refuses to sleep, the
// call is not delayed.
void sleep_until(std::uint64_t ns) noexcept {
    const timespec until{static_cast<std::time_t>(ns / second_ns), static_cast<long>(ns % second_ns)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr) == EINTR) {
    }
}

}  // namespace

// Calls `act` with each rate that holds in account `i`, its pace and its word, until one returns false.
template <class Act>
[[gnu::always_inline]] inline bool Context::for_each_rate(std::size_t i, Command command, Act act) {
    if (!device_.usable(i)) return true;
    auto& account = *accounts_.account[i];
    const auto& limits = device_.limit_cache(i);
    for (auto left = limits.held_rates() & (command.bytes != 0 ? ~0U : (1U << LimitCache::bounds) - 1); left != 0; left &= left - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(left));
        const RateWait wait{i, bit, bit < LimitCache::bounds ? 1 : command.bytes, 0};
        const auto pace = limits.pace(wait.rate(), wait.bound());
        auto& word = account.ledger().rate_word(account.owner(), device_.index(i), wait.rate(), wait.scope(), wait.is_total());
        if (pace.unit != 0 && !act(wait, pace, word)) [[unlikely]]
            return false;
    }
    return true;
}

// Whether the command need not wait, by limits that are known and held until now; else nothing is taken. `wait_for_rates` goes on.
bool Context::reserves_at_once(Command command) noexcept {
    Taken taken{};
    const auto now = monotonic_ns();
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!device_.usable(i)) continue;
        const auto& limits = device_.limit_cache(i);
        LimitCache::View view;
        const auto most = limits.longest_delay_ns();
        const bool known = limits.view(view) && view.holds() && most != 0;
        if (!known || !for_each_rate(i, command, [&](const RateWait& wait, const Pace& pace, std::uint64_t& word) __attribute__((always_inline)) {
                const auto reserved = reserve(word, pace, wait.amount, now, most);
                taken[i][wait.bit] = reserved.taken_ns;
                return reserved.wait_ns == 0;
            })) [[unlikely]]
            return take_back(command, taken), false;
    }
    return true;
}

void Context::take_back(Command command, const Taken& taken) noexcept {
    for (std::size_t i = 0; i < accounts_.count; ++i)
        for_each_rate(i, command, [&](const RateWait& wait, const Pace&, std::uint64_t& word) {
            rdmaquota::take_back(word, taken[i][wait.bit]);
            return true;
        });
}

bool Context::wait_for_rates(Command command) {
    for (Attempt attempt{};;) {
        const auto now = monotonic_ns();
        RateWait slowest{}, audited{};
        Taken taken{};
        const bool in_time = reserve_rates(command, now, slowest, audited, taken, attempt);
        if (audited.wait_ns != 0) tell_of_audit(audited);
        if (slowest.wait_ns == 0) [[likely]]
            return true;
        if (in_time) return delay(slowest, now), true;
        if (is_denied(slowest, command, taken, attempt)) return false;
    }
}

// Takes the command's part of all rates; false where one would be waited for too long. `slowest` is that one, or the one that is waited
// for longest; `audited` is one that would deny if its policy enforced it.
bool Context::reserve_rates(Command command, std::uint64_t now_ns, RateWait& slowest, RateWait& audited, Taken& taken, Attempt& attempt) {
    const BusErrorsAllowed allowed;
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!device_.usable(i)) continue;
        const auto& policy = accounts_.account[i]->policy();
        device_.renew_limits(policy, i);
        attempt.generation = policy.generation();
        const auto most = policy.max_delay_ns();
        const bool audits = policy.mode() == Mode::audit;
        if (!for_each_rate(i, command, [&](RateWait wait, const Pace& pace, std::uint64_t& word) __attribute__((always_inline)) {
                const auto reserved = reserve(word, pace, wait.amount, now_ns, most);
                wait.wait_ns = reserved.wait_ns;
                taken[i][wait.bit] = reserved.taken_ns;
                const bool in_time = wait.wait_ns <= most;
                if (audits) return in_time || (audited = wait, true);
                if (wait.wait_ns > slowest.wait_ns || !in_time) slowest = wait;
                return in_time;
            }))
            return false;
    }
    return true;
}

void Context::delay(const RateWait& wait, std::uint64_t now_ns) {
    const NoCancellation guard;
    const KeepErrno keep;
    sleep_until(now_ns + wait.wait_ns);  // with the program's own signals
    const BusErrorsAllowed allowed;
    auto& account = *accounts_.account[wait.account];
    account.ledger().note_delay(device_.index(wait.account), wait.rate(), wait.wait_ns);
    try {
        report_delay(account, device_.index(wait.account), device_.key(), denial_of(wait));
    } catch (...) {  // no memory: delayed without a word
    }
}

// What would have been denied.
void Context::tell_of_audit(const RateWait& wait) {
    const NoCancellation guard;
    const KeepErrno keep;
    const BusErrorsAllowed allowed;
    report_denial(wait.account, device_, denial_of(wait), Mode::audit, 0);
}

// Takes back what was taken of other rates. False: the limits have changed meanwhile, or the tenant's share has. A denial
// comes after the longest delay, so that a program that tries again at once is slow, too.
bool Context::is_denied(const RateWait& wait, Command command, const Taken& taken, Attempt& attempt) {
    const NoCancellation guard;
    const auto denial = denial_of(wait);
    const auto& policy = accounts_.account[wait.account]->policy();
    std::uint64_t until_ns = 0;
    {
        const KeepErrno keep;
        const BusErrorsAllowed allowed;
        take_back(command, taken);
        if (may_have_more(wait.account, device_, denial, attempt)) return false;
        until_ns = monotonic_ns() + policy.max_delay_ns();
    }
    sleep_until(until_ns);  // with the program's own signals
    const BusErrorsAllowed allowed;
    Amounts amounts;
    if (command.registers) amounts.add(Resource::mr, 1);
    const int error = denial_errno(policy.deny_errno(), amounts);
    report_denial(wait.account, device_, denial, Mode::enforce, error);
    errno = error;
    return true;
}

Denial Context::denial_of(const RateWait& wait) const noexcept {
    Denial denial;
    denial.resource = wait.rate();
    denial.scope = wait.scope();
    denial.total = wait.is_total();
    denial.used = std::min(wait.wait_ns, max_amount);
    denial.limit = device_.limit_cache(wait.account).rate_limit(wait.rate(), wait.bound());
    denial.requested = wait.amount;
    denial.proved = true;
    return denial;
}

}  // namespace rdmaquota::provider
