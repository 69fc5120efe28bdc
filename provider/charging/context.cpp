// Charging and releasing for a context; the table of contexts is in context_table.cpp, what is left of
// device maxima in context_clamp.cpp.
#include "provider/charging/context.hpp"

#include <new>
#include <utility>

#include <unistd.h>

#include <fmt/core.h>

#include "provider/charging/denial.hpp"

namespace rdmaquota::provider {

Context::Context(std::string device)
    : pid_(getpid()), accounts_(join_accounts()), device_(std::move(device), accounts_) {
    if (device_.deny_errno() == 0) return;
    accounts_.denied = true;
    accounts_.deny_errno = device_.deny_errno();
}

Context::~Context() {
    const bool inherited = pid_ != getpid();
    while (const auto receipt = receipts_.take_any())
        if (!inherited) uncharge(*receipt);
    if (handle_receipt && !inherited) uncharge(*handle_receipt);
    const BusErrorsAllowed allowed;
    for (Port* port = ports_.load(); port;) delete std::exchange(port, port->next);
    if (!inherited) leave_accounts();
}

// Whether account `i` counts new objects at all.
bool Context::counts(std::size_t i) noexcept {
    return device_.usable(i) && accounts_.account[i]->policy().mode() != Mode::off;
}

// False: denied, with errno set. In audit mode what exceeds a limit is charged all the same.
bool Context::charge_account(std::size_t i, DevicePort& place, const Amounts& amounts, Retry retry) noexcept {
    auto& account = *accounts_.account[i];
    const auto& policy = account.policy();
    Limits limits[Amounts::capacity];
    if (policy.mode() != Mode::off) place.limits(policy, i, amounts, limits);
    const auto charge = [&] { return account.ledger().charge(account.owner(), place.index(i), amounts, limits); };
    auto denial = charge();
    if (denial && retry == Retry::after_closed && end_closed()) denial = charge();
    if (!denial && !account.ledger().lost()) [[likely]]
        return true;
    const int error = policy.deny_errno();
    const bool admitted =
        account.ledger().lost() ? account.admits_uncounted() : admit_denied(i, place, amounts, *denial, error);
    if (!admitted) errno = error;
    return admitted;
}

// Reports a denial; true when the mode only asks for the report.
bool Context::admit_denied(std::size_t i, DevicePort& place, const Amounts& amounts, const Denial& denial,
                           int error) noexcept {
    auto& account = *accounts_.account[i];
    const auto mode = account.policy().mode();
    try {
        report(account, place.index(i), place.name(), denial, mode, error);
    } catch (...) {  // no memory: denied without a word
    }
    if (mode != Mode::audit) return false;
    const Limits none[Amounts::capacity];
    return !account.ledger().charge(account.owner(), place.index(i), amounts, none);
}

std::unique_ptr<Receipt> Context::charge(const Amounts& amounts) noexcept {
    const int saved = errno;
    const BusErrorsAllowed allowed;
    auto receipt = receipts_.blank();
    if (!receipt || accounts_.denied) {
        if (receipt) report_unavailable(device_.name(), accounts_.deny_errno);
        errno = receipt ? accounts_.deny_errno : ENOMEM;
        return nullptr;
    }
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (counts(i)) receipt->charged = static_cast<AccountMask>(receipt->charged | (1U << i));
    if (!charge_accounts(device_, receipt->charged, amounts, Retry::after_closed)) return nullptr;
    receipt->amounts = amounts;
    errno = saved;
    return receipt;
}

bool Context::charge_more(const Receipt& receipt, const Amounts& amounts) noexcept {
    const BusErrorsAllowed allowed;
    return charge_accounts(device_, receipt.charged, amounts, Retry::never);
}

bool Context::charge_accounts(DevicePort& place, AccountMask wanted, const Amounts& amounts, Retry retry) noexcept {
    AccountMask done = 0;
    for (std::size_t i = 0; i < accounts_.count; ++i) {
        if (!(wanted & (1U << i)) || !place.usable(i)) continue;
        if (!charge_account(i, place, amounts, retry)) {
            const int error = errno;
            uncharge_accounts(place, done, amounts);
            errno = error;
            return false;
        }
        done = static_cast<AccountMask>(done | (1U << i));
    }
    return true;
}

void Context::uncharge_part(const Receipt& receipt, const Amounts& amounts) noexcept {
    const BusErrorsAllowed allowed;
    uncharge_accounts(device_, receipt.charged, amounts);
}

void Context::uncharge_accounts(DevicePort& place, AccountMask charged, const Amounts& amounts) noexcept {
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (charged & (1U << i) && place.usable(i))
            accounts_.account[i]->ledger().uncharge(accounts_.account[i]->owner(), place.index(i), amounts);
}

void Context::uncharge(const Receipt& receipt) noexcept {
    uncharge_part(receipt, receipt.amounts);
    if (receipt.port != 0) unbind(receipt, receipt.port);
}

std::string Context::port_name(unsigned number) const { return fmt::format("{}/{}", device_.name(), number); }

DevicePort* Context::known_port(unsigned number) noexcept {
    for (Port* port = ports_.load(); port; port = port->next)
        if (port->number == number) return &port->place;
    return nullptr;
}

void Context::uncharge(std::unique_ptr<Receipt> receipt) noexcept {
    uncharge(*receipt);
    receipts_.discard(std::move(receipt));
}

// Two threads that come first may enter the same port twice, which is two names for the same cells.
DevicePort* Context::port(unsigned number) noexcept {
    if (DevicePort* known = known_port(number)) return known;
    try {
        auto* fresh = new Port{{port_name(number), accounts_}, number, ports_.load()};
        while (!ports_.compare_exchange_weak(fresh->next, fresh)) {
        }
        return &fresh->place;
    } catch (...) {  // no memory
        return nullptr;
    }
}

bool Context::counts_port(unsigned number) noexcept {
    if (known_port(number)) return true;
    const BusErrorsAllowed allowed;
    try {
        const auto name = port_name(number);
        for (std::size_t i = 0; i < accounts_.count; ++i)
            if (LimitCache::named(accounts_.account[i]->policy(), name)) return true;
    } catch (...) {  // no memory
    }
    return false;
}

bool Context::bind(const Receipt& receipt, unsigned number) noexcept {
    const BusErrorsAllowed allowed;
    DevicePort* place = port(number);
    const int error = place ? place->deny_errno() : ENOMEM;
    if (error == 0) return charge_accounts(*place, receipt.charged, Amounts{}.add(Resource::qp, 1), Retry::never);
    if (place) report_unavailable(place->name(), error);
    errno = error;
    return false;
}

void Context::unbind(const Receipt& receipt, unsigned number) noexcept {
    const BusErrorsAllowed allowed;
    if (DevicePort* place = port(number)) uncharge_accounts(*place, receipt.charged, Amounts{}.add(Resource::qp, 1));
}

void Context::count_cq_event() noexcept {
    const BusErrorsAllowed allowed;
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (counts(i)) accounts_.account[i]->ledger().count_cq_event(accounts_.account[i]->owner(), device_.index(i));
}

void Context::count_qp_change(unsigned state, bool failed) noexcept {
    const BusErrorsAllowed allowed;
    for (std::size_t i = 0; i < accounts_.count; ++i)
        if (counts(i))
            accounts_.account[i]->ledger().count_qp_change(accounts_.account[i]->owner(), device_.index(i), state,
                                                           failed);
}

}  // namespace rdmaquota::provider
