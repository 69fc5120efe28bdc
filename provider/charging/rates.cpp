// Waiting for one's turn where a rate holds (shm/ledger/pace.hpp). A call takes its part of all rates first and then waits once, for
// the slowest, with no lock held and nothing charged.
#include <algorithm>
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

// Calls `act` with each rate that holds and its word, until one returns false.
template <class Act>
bool Context::for_each_rate(Command command, Act act) {
    const std::uint64_t amounts[rate_count] = {1, command.bytes};
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        const auto& limits = device_.limit_cache(i);
        if (!device_.usable(i) || !limits.has_rates()) continue;
        auto& account = *accounts_.account[i];
        for (std::size_t r = 0; r < rate_count; ++r) {
            if (amounts[r] == 0) continue;
            const auto rate = static_cast<Resource>(resource_count + r);
            const auto words = account.ledger().rate_words(account.owner(), device_.index(i), rate);
            for (std::size_t bound = 0; bound < LimitCache::bounds; ++bound)
                if (const auto pace = limits.pace(rate, bound); pace.unit != 0 && !act(Turn{i, bound, rate, amounts[r], 0}, pace, *words[bound]))
                    return false;
        }
    }
    return true;
}

bool Context::wait_for_turn(Command command) {
    const BusErrorsAllowed allowed;
    Attempt attempt{};
    for (;;) {
        const auto now = monotonic_ns();
        Turn slowest{};
        const bool has_turn = take_turn(command, now, slowest, attempt);
        if (has_turn && slowest.wait_ns == 0) [[likely]]
            return true;
        if (has_turn) return delay(slowest, now), true;
        if (!is_denied(slowest, command, attempt)) continue;
        return false;
    }
}

// Takes the command's part of all rates; false where one would be waited for too long, which is `slowest` then.
bool Context::take_turn(Command command, std::uint64_t now_ns, Turn& slowest, Attempt& attempt) {
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (device_.usable(i)) device_.renew_limits(accounts_.account[i]->policy(), i);
    return for_each_rate(command, [&](Turn turn, const Pace& pace, std::uint64_t& word) {
        const auto& policy = accounts_.account[turn.account]->policy();
        const auto most = longest_delay_ns(policy);
        turn.wait_ns = reserve(word, pace, turn.amount, now_ns, most);
        if (turn.wait_ns != 0 && policy.mode() == Mode::audit) [[unlikely]] {
            if (turn.wait_ns > most) report_denial(turn.account, device_, denial_of(turn), Mode::audit, 0);
            return true;
        }
        if (turn.wait_ns > slowest.wait_ns) slowest = turn;
        attempt.generation = policy.generation();
        return turn.wait_ns <= most;
    });
}

void Context::delay(const Turn& turn, std::uint64_t now_ns) {
    const NoCancellation guard;
    const KeepErrno keep;
    sleep_until(now_ns + turn.wait_ns);
    auto& account = *accounts_.account[turn.account];
    account.ledger().note_delay(device_.index(turn.account), turn.rate, turn.wait_ns);
    try {
        report_delay(account, device_.index(turn.account), device_.key(), denial_of(turn));
    } catch (...) {  // no memory: delayed without a word
    }
}

// Takes back what was taken of the rates before this one. False: the limits have changed meanwhile, or the tenant's share has.
bool Context::is_denied(const Turn& turn, Command command, Attempt& attempt) {
    const NoCancellation guard;
    for_each_rate(command, [&](const Turn& taken, const Pace& pace, std::uint64_t& word) {
        if (taken.account == turn.account && taken.rate == turn.rate && taken.bound == turn.bound) return false;
        take_back(word, pace, taken.amount);
        return true;
    });
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
    denial.resource = turn.rate;
    denial.scope = turn.bound < 2 ? Scope::process : Scope::tenant;
    denial.total = turn.bound % 2 != 0;
    denial.used = std::min(turn.wait_ns, max_amount);
    denial.limit = device_.limit_cache(turn.account).rate_limit(turn.rate, turn.bound);
    denial.requested = turn.amount;
    denial.proved = true;
    return denial;
}

}  // namespace rdmaquota::provider
