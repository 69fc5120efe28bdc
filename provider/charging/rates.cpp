// Waiting for one's turn where a rate holds (shm/ledger/pace.hpp). A call takes its part of all rates first and then waits once, for
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

std::uint64_t longest_delay_ns(const LimitsSegment& policy) noexcept { return policy.max_delay_ms() * std::uint64_t{1'000'000}; }

}  // namespace

// Calls `act` with each rate that holds in account `i`, its pace and its word, until one returns false.
template <class Act>
[[gnu::always_inline]] inline bool Context::for_each_rate(std::size_t i, Command command, Act act) {
    if (!device_.usable(i)) return true;
    auto& account = *accounts_.account[i];
    const auto& limits = device_.limit_cache(i);
    for (auto left = limits.held_rates() & (command.bytes != 0 ? ~0U : (1U << LimitCache::bounds) - 1); left != 0; left &= left - 1) {
        const auto bit = static_cast<unsigned>(std::countr_zero(left));
        const Turn turn{i, bit, bit < LimitCache::bounds ? 1 : command.bytes, 0};
        const auto pace = limits.pace(turn.rate(), turn.bound());
        auto& word = account.ledger().rate_word(account.owner(), device_.index(i), turn.rate(), turn.scope(), turn.is_total());
        if (pace.unit != 0 && !act(turn, pace, word)) [[unlikely]]
            return false;
    }
    return true;
}

// Whether the command need not wait, by limits that are known and held until now; else nothing is taken. `wait_for_turn` goes on.
bool Context::takes_turn_at_once(Command command) noexcept {
    const auto now = monotonic_ns();
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        const auto& limits = device_.limit_cache(i);
        LimitCache::View view;
        const auto most = limits.longest_delay_ns();
        Turn last{i, 0, 0, 0};
        const bool known = limits.view(view) && view.holds() && most != 0;
        if (!device_.usable(i)) continue;
        if (!known || !for_each_rate(i, command, [&](const Turn& turn, const Pace& pace, std::uint64_t& word) __attribute__((always_inline)) {
                last = turn;
                const auto wait = reserve(word, pace, turn.amount, now, most);
                if (wait != 0 && wait <= most) rdmaquota::take_back(word, pace, turn.amount);
                return wait == 0;
            })) [[unlikely]]
            return take_back(command, last), false;
    }
    return true;
}

// What was taken of the rates before `until`.
void Context::take_back(Command command, const Turn& until) noexcept {
    for (std::size_t i = 0; i <= until.account; ++i)
        for_each_rate(i, command, [&](const Turn& taken, const Pace& pace, std::uint64_t& word) {
            if (taken.account == until.account && (until.amount == 0 || taken.bit == until.bit)) return false;
            rdmaquota::take_back(word, pace, taken.amount);
            return true;
        });
}

bool Context::wait_for_turn(Command command) {
    for (Attempt attempt{};;) {
        const auto now = monotonic_ns();
        Turn slowest{};
        const bool has_turn = take_turn(command, now, slowest, attempt);
        if (slowest.wait_ns == 0) [[likely]]
            return true;
        if (accounts_.account[slowest.account]->policy().mode() == Mode::audit) return tell_of_audit(slowest), true;
        if (has_turn) return delay(slowest, now), true;
        if (is_denied(slowest, command, attempt)) return false;
    }
}

// Takes the command's part of all rates; false where one would be waited for too long. `slowest` is that one, or the one that is waited
// for longest.
bool Context::take_turn(Command command, std::uint64_t now_ns, Turn& slowest, Attempt& attempt) {
    const BusErrorsAllowed allowed;
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!device_.usable(i)) continue;
        const auto& policy = accounts_.account[i]->policy();
        device_.renew_limits(policy, i);
        attempt.generation = policy.generation();
        const auto most = longest_delay_ns(policy);
        const bool audits = policy.mode() == Mode::audit;
        if (!for_each_rate(i, command, [&](Turn turn, const Pace& pace, std::uint64_t& word) __attribute__((always_inline)) {
                turn.wait_ns = reserve(word, pace, turn.amount, now_ns, most);
                if (turn.wait_ns > slowest.wait_ns) slowest = turn;
                return turn.wait_ns <= most || audits;
            }))
            return false;
    }
    return true;
}

void Context::delay(const Turn& turn, std::uint64_t now_ns) {
    const NoCancellation guard;
    const KeepErrno keep;
    const BusErrorsAllowed allowed;
    sleep_until(now_ns + turn.wait_ns);
    auto& account = *accounts_.account[turn.account];
    account.ledger().note_delay(device_.index(turn.account), turn.rate(), turn.wait_ns);
    try {
        report_delay(account, device_.index(turn.account), device_.key(), denial_of(turn));
    } catch (...) {  // no memory: delayed without a word
    }
}

// What would have been denied.
void Context::tell_of_audit(const Turn& turn) {
    const NoCancellation guard;
    const KeepErrno keep;
    const BusErrorsAllowed allowed;
    if (turn.wait_ns > longest_delay_ns(accounts_.account[turn.account]->policy()))
        report_denial(turn.account, device_, denial_of(turn), Mode::audit, 0);
}

// Takes back what was taken of the rates before this one. False: the limits have changed meanwhile, or the tenant's share has.
bool Context::is_denied(const Turn& turn, Command command, Attempt& attempt) {
    const NoCancellation guard;
    const BusErrorsAllowed allowed;
    take_back(command, turn);
    const auto denial = denial_of(turn);
    if (may_have_more(turn.account, device_, denial, attempt)) return false;
    Amounts amounts;
    if (command.registers) amounts.add(Resource::mr, 1);
    const int error = denial_errno(accounts_.account[turn.account]->policy().deny_errno(), amounts);
    report_denial(turn.account, device_, denial, Mode::enforce, error);
    errno = error;
    return true;
}

Denial Context::denial_of(const Turn& turn) const noexcept {
    Denial denial;
    denial.resource = turn.rate();
    denial.scope = turn.scope();
    denial.total = turn.is_total();
    denial.used = std::min(turn.wait_ns, max_amount);
    denial.limit = device_.limit_cache(turn.account).rate_limit(turn.rate(), turn.bound());
    denial.requested = turn.amount;
    denial.proved = true;
    return denial;
}

}  // namespace rdmaquota::provider
