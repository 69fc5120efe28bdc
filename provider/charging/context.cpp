// Charging and uncharging. The table of contexts is in context_table.cpp, what a quota leaves of device attributes in
// clamp.cpp.
#include "provider/charging/context.hpp"

#include <algorithm>
#include <cerrno>
#include <new>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "provider/charging/denial.hpp"
#include "provider/charging/grant_request.hpp"
#include "provider/charging/opening.hpp"
#include "provider/charging/shortage.hpp"
#include "provider/charging/soft_limit.hpp"
#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {
namespace {

constexpr Amounts one_qp = Amounts{}.add(Resource::qp, 1);

std::string port_of(const std::string& device, unsigned number) { return fmt::format("{}/{}", device, number); }

}  // namespace

template <class Act>
void Context::for_each_charged(DevicePort& port, AccountMask charged, Act act) {
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (charged & (1U << i) && port.usable(i)) act(*accounts_.account[i], port.index(i));
}

Context::Context(std::string device, std::string uverbs)
    : process_(this_process()), accounts_(join_accounts()), device_(std::move(device), std::move(uverbs), accounts_, report_) {
    report_opening(device_, accounts_);
    if (device_.deny_errno() == 0) return;
    accounts_.denied = true;
    accounts_.deny_errno = device_.deny_errno();
}

Context::~Context() {
    const bool inherited = process_ != this_process();
    if (!inherited) uncharge_all();
    const BusErrorsAllowed allowed;
    for (auto* bound = ports_.load(); bound;) delete std::exchange(bound, bound->next);
    if (!inherited) leave_accounts(accounts_);
}

void Context::uncharge_all() noexcept {
    receipts_.drain([this](const Receipt& receipt) { uncharge(receipt); });
    if (const auto receipt = std::exchange(handle_receipt, std::nullopt)) uncharge(*receipt);
}

// Whether account `i` counts new objects at all.
bool Context::counts(std::size_t i) { return device_.usable(i) && accounts_.account[i]->policy().mode() != Mode::off; }

std::optional<AccountMask> Context::charge(Kind kind, std::uint64_t size) {
    return with_kind(kind, [&]<Kind known>() { return charge<known>(size); });
}

// `charged`: the accounts charged so far. They are uncharged first; then all are tried again, one after the other.
std::optional<AccountMask> Context::charge_after_all(Kind kind, std::uint64_t size, AccountMask charged) {
    const NoCancellation guard;
    const BusErrorsAllowed allowed;
    const auto amounts = amounts_of(kind, size);
    give_back_accounts(device_, charged, amounts);
    if (accounts_.denied) {
        const int error = denial_errno(accounts_.deny_errno, amounts);
        report_unavailable(device_.name(), error);
        errno = error;
        return std::nullopt;
    }
    AccountMask wanted = 0;
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (counts(i)) wanted = static_cast<AccountMask>(wanted | 1U << i);
    if (!charge_accounts(device_, wanted, amounts, Retry::after_closed)) return std::nullopt;
    return wanted;
}

bool Context::charge_more(const Receipt& receipt, const Amounts& amounts) {
    const NoCancellation guard;
    const BusErrorsAllowed allowed;
    return charge_accounts(device_, receipt.charged, amounts, Retry::never);
}

bool Context::charge_accounts(DevicePort& port, AccountMask wanted, const Amounts& amounts, Retry retry) {
    AccountMask done = 0;
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!(wanted & (1U << i)) || !port.usable(i)) continue;
        Attempt attempt{};
        if (!charge_account(i, port, amounts, retry, attempt)) {
            const int error = errno;
            give_back_accounts(port, done, amounts);
            if (attempt.denied) report_denial(i, port, *attempt.denied, Mode::enforce, error);
            errno = error;
            return false;
        }
        done = static_cast<AccountMask>(done | (1U << i));
    }
    return true;
}

// False: denied, with errno set. The caller reports the denial, since the stack may be small and this function's frames
// are large. In audit mode what exceeds a limit is charged all the same. When a limit was changed meanwhile, it is
// tried again by the new one.
bool Context::charge_account(std::size_t i, DevicePort& port, const Amounts& amounts, Retry retry, Attempt& attempt) {
    auto& account = *accounts_.account[i];
    auto& ledger = account.ledger();
    for (;;) {
        const auto& policy = account.policy();
        attempt.generation = policy.generation();
        Limits limits[Amounts::capacity];
        if (policy.mode() != Mode::off) {
            port.limits(policy, i, amounts, limits);
            apply_soft_limits(i, port, amounts, limits);
        }
        const auto ended_before = ended.load();
        Denial denial;
        const bool at_once = ledger.charge_at_once(account.owner(), port.index(i), amounts, limits, denial);
        if (!at_once || ledger.lost()) {
            const auto outcome =
                charge_by_proof(i, port, amounts, limits, denial, ended_before, retry, attempt);
            if (outcome == Outcome::again) continue;
            if (outcome == Outcome::denied) return false;
        }
        const bool in_place = !policy.superseded() || &account.policy() == &policy;
        if (ledger.lost() || (policy.generation() == attempt.generation && in_place)) return true;
        ledger.give_back(account.owner(), port.index(i), amounts);
    }
}

// There was no room, or the ledger is lost. A context that another thread ended since `ended_before` was read may have
// made room after our denial was proved.
Context::Outcome Context::charge_by_proof(std::size_t i, DevicePort& port, const Amounts& amounts, const Limits* limits,
                                          Denial first, unsigned ended_before, Retry retry, Attempt& attempt) {
    const int saved = errno;
    auto& account = *accounts_.account[i];
    auto& ledger = account.ledger();
    std::optional<Denial> denial;
    if (!ledger.lost()) denial = ledger.charge_by_proof(account.owner(), port.index(i), amounts, limits, first);
    if (denial && retry == Retry::after_closed) {
        end_closed();
        if (ended.load() != ended_before) denial = ledger.charge(account.owner(), port.index(i), amounts, limits);
    }
    if (denial && !ledger.lost() && may_have_more(i, port, *denial, attempt)) {
        errno = saved;
        return Outcome::again;
    }
    if (ledger.lost() ? account.admits_uncounted() : !denial || admit_by_audit(i, port, amounts, *denial)) {
        errno = saved;
        return Outcome::admitted;
    }
    if (!ledger.lost()) attempt.denied = denial;
    errno = denial_errno(account.policy().deny_errno(), amounts);
    return Outcome::denied;
}

void Context::apply_soft_limits(std::size_t i, DevicePort& port, const Amounts& amounts, Limits* limits) {
    auto& account = *accounts_.account[i];
    const auto& policy = account.policy();
    for (std::size_t n = 0; n < amounts.count; ++n) {
        const SoftLimit soft{port.soft_limit(policy, amounts.resource[n]), limits[n].tenant, policy.grace_s()};
        limits[n].tenant =
            limit_now(account.ledger(), port.index(i), amounts.resource[n], amounts.amount[n], soft);
    }
}

// After a denial: a soft limit may be exceeded after all, since the proof found that usage is below it; or the sidecar may
// have given the tenant a larger share, also while the denial was proved. The first question sets the time until which
// it is asked again.
bool Context::may_have_more(std::size_t i, DevicePort& port, const Denial& denial, Attempt& attempt) {
    if (denial.scope != Scope::tenant) return false;
    auto& account = *accounts_.account[i];
    const auto& policy = account.policy();
    if (policy.generation() != attempt.generation) return true;
    auto& wait_until_ns = attempt.wait_until_ns;
    const auto device = denial.total ? DeviceKey(total_device) : port.key();
    if (wait_until_ns == 0) {
        const bool of_cluster = policy.reason(Scope::tenant, device, denial.resource) == Reason::cluster;
        const auto wait_ms = of_cluster ? std::max(policy.grant_wait_ms(), cluster_wait_ms) : policy.grant_wait_ms();
        wait_until_ns = monotonic_ns() + wait_ms * std::uint64_t{1'000'000};
    }
    if (is_soft(policy, device, denial)) return denial.used <= denial.limit && monotonic_ns() < wait_until_ns;
    if (policy.mode() != Mode::enforce || policy.limit(Scope::tenant, device, denial.resource) != denial.limit ||
        !is_share(policy.reason(Scope::tenant, device, denial.resource)))
        return false;
    const auto generation = policy.generation();
    return ask_for_share(account, port.index(i), denial, wait_until_ns) &&
           (policy.generation() != generation || &account.policy() != &policy);
}

// Charges beyond the limit, and reports it, in a mode that asks for that.
bool Context::admit_by_audit(std::size_t i, DevicePort& port, const Amounts& amounts, const Denial& denial) {
    auto& account = *accounts_.account[i];
    if (account.policy().mode() != Mode::audit) return false;
    report_denial(i, port, denial, Mode::audit, 0);
    const Limits none[Amounts::capacity];
    return !account.ledger().charge(account.owner(), port.index(i), amounts, none);
}

void Context::report_denial(std::size_t i, DevicePort& port, const Denial& denial, Mode mode, int error) noexcept {
    try {
        report(*accounts_.account[i], port.index(i), port.key(), denial, mode, error);
    } catch (...) {  // no memory: denied without a word
    }
}

bool Context::is_refusal(int error) const noexcept {
    const BusErrorsAllowed allowed;
    return error == EDQUOT || std::any_of(accounts_.account.begin(), accounts_.account.begin() + accounts_.count, [&](auto* account) {
               return account->policy().deny_errno() == error;
           });
}

int Context::denial_errno(int error, const Amounts& amounts) noexcept {
    const auto* end = amounts.resource + amounts.count;
    const bool memory = std::any_of(amounts.resource, end, [](Resource resource) {
        return resource == Resource::mr || resource == Resource::mr_bytes;
    });
    return memory && error == EAGAIN ? EDQUOT : error;
}

void Context::report_failure(const Receipt& receipt) {
    if (!is_shortage(errno)) return;
    const NoCancellation guard;
    const KeepErrno keep;
    const BusErrorsAllowed allowed;
    const Shortage shortage{receipt.kind, receipt.size, errno};
    for_each_charged(device_, receipt.charged, [&](Account& account, std::uint32_t device) {
        report_shortage(account, device, device_.name(), shortage);
    });
}

void Context::uncharge(const Receipt& receipt) noexcept {
    with_kind(receipt.kind, [&]<Kind kind>() { uncharge_as<kind>(receipt.charged, receipt.size); });
    if (receipt.port != 0) unbind(receipt, receipt.port);
}

void Context::give_back(const Receipt& receipt) noexcept {
    give_back_part(receipt, amounts_of(receipt.kind, receipt.size));
}

void Context::give_back_part(const Receipt& receipt, const Amounts& amounts) noexcept {
    const BusErrorsAllowed allowed;
    give_back_accounts(device_, receipt.charged, amounts);
}

void Context::uncharge_part(const Receipt& receipt, const Amounts& amounts) noexcept {
    const BusErrorsAllowed allowed;
    uncharge_accounts(device_, receipt.charged, amounts);
}

void Context::uncharge_accounts(DevicePort& port, AccountMask charged, const Amounts& amounts) noexcept {
    for_each_charged(port, charged, [&](Account& account, std::uint32_t device) {
        account.ledger().uncharge(account.owner(), device, amounts);
    });
}

void Context::give_back_accounts(DevicePort& port, AccountMask charged, const Amounts& amounts) noexcept {
    for_each_charged(port, charged, [&](Account& account, std::uint32_t device) {
        account.ledger().give_back(account.owner(), device, amounts);
    });
}

DevicePort* Context::find_port(unsigned number) noexcept {
    for (auto* bound = ports_.load(); bound; bound = bound->next)
        if (bound->number == number) return &bound->port;
    return nullptr;
}

// Two threads that come first may enter the same port twice: both entries then name the same cells.
DevicePort* Context::port(unsigned number) noexcept {
    if (DevicePort* known = find_port(number)) return known;
    try {
        auto* fresh = new BoundPort{{port_of(device_.name(), number), port_of(device_.identity(), number), accounts_, report_},
                                    number, ports_.load()};
        while (!ports_.compare_exchange_weak(fresh->next, fresh)) {
        }
        return &fresh->port;
    } catch (...) {  // no memory
        return nullptr;
    }
}

bool Context::counts_port(unsigned number) {
    if (find_port(number)) return true;
    const NoCancellation guard;
    const BusErrorsAllowed allowed;
    try {
        const auto name = port_of(device_.name(), number);
        for (std::size_t i = 0; i < accounts_.count; ++i)
            if (LimitCache::named(accounts_.account[i]->policy(), {name, device_.key().uverbs})) return true;
    } catch (...) {  // no memory
    }
    return false;
}

bool Context::bind(const Receipt& receipt, unsigned number) {
    const NoCancellation guard;
    const BusErrorsAllowed allowed;
    DevicePort* bound = port(number);
    const int error = bound ? bound->deny_errno() : ENOMEM;
    if (error == 0) return charge_accounts(*bound, receipt.charged, one_qp, Retry::never);
    if (bound) report_unavailable(bound->name(), error);
    errno = error;
    return false;
}

void Context::unbind(const Receipt& receipt, unsigned number) noexcept {
    const BusErrorsAllowed allowed;
    if (DevicePort* bound = find_port(number)) uncharge_accounts(*bound, receipt.charged, one_qp);
}

void Context::count_cq_event() {
    const BusErrorsAllowed allowed;
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (counts(i)) accounts_.account[i]->ledger().count_cq_event(accounts_.account[i]->owner(), device_.index(i));
}

void Context::count_qp_change(unsigned state, bool failed) {
    const BusErrorsAllowed allowed;
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (counts(i))
            accounts_.account[i]->ledger().count_qp_change(accounts_.account[i]->owner(), device_.index(i), state,
                                                           failed);
}

}  // namespace rdmaquota::provider
