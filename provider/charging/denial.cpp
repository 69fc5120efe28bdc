#include "provider/charging/denial.hpp"

#include <algorithm>
#include <functional>
#include <memory>

#include "policy/text.hpp"
#include "provider/charging/repeats.hpp"
#include "provider/host/cancellation.hpp"
#include "provider/host/environment.hpp"
#include "provider/host/keep_errno.hpp"
#include "provider/host/log_target.hpp"

namespace rdmaquota::provider {
namespace {

bool of_process(const Denial& denial) noexcept { return denial.scope == Scope::process; }

// No command raises a limit that the environment sets.
bool from_environment(std::string_view device, const Denial& denial) {
    const auto& own = environment();
    const auto r = index(denial.resource);
    if (denial.total) return (of_process(denial) ? own.process : own.tenant)[r] == denial.limit;
    const auto& devices = of_process(denial) ? own.process_devices : own.tenant_devices;
    return std::any_of(devices.begin(), devices.end(),
                       [&](const auto& entry) { return entry.device == device && entry.limits[r] == denial.limit; });
}

std::string helps(std::string_view device, const Denial& denial, const Circumstances& found) {
    if (!from_environment(device, denial)) return remedy(device, denial, found);
    return text("the limit comes from an environment variable of this program, such as {}",
                of_process(denial) ? "RDMAQUOTA_LIMIT" : "RDMAQUOTA_TENANT_LIMIT");
}

}  // namespace

std::string holder_word(const Denial& denial, const std::string& tenant) {
    return of_process(denial) ? "this process" : "tenant " + tenant;
}

Event event_of(std::uint32_t device_index, const Denial& denial, Mode mode, int error, Reason reason,
               const Identity& who) {
    Event event{};
    event.kind = mode == Mode::audit ? EventKind::would_deny : denial.proved ? EventKind::denied : EventKind::unproved;
    event.scope = event_scope(denial.scope, denial.total);
    event.device = device_index;
    event.resource = static_cast<std::uint32_t>(index(denial.resource));
    event.pid = who.pid;
    event.pid_namespace = who.pid_namespace;
    event.uid = who.uid;
    event.error = mode == Mode::audit ? 0 : static_cast<std::uint32_t>(error);
    event.used = denial.used;
    event.limit = denial.limit;
    event.requested = denial.requested;
    event.reason = static_cast<std::uint32_t>(reason);
    who.comm.copy(event.comm, sizeof event.comm - 1);
    return event;
}

namespace {

// The unit in which people read the amount, in bytes.
std::uint64_t unit_of(std::uint64_t amount) noexcept {
    constexpr std::uint64_t kibi = 1024;
    std::uint64_t unit = 1;
    while (amount / unit >= kibi && unit < kibi * kibi * kibi * kibi) unit *= kibi;
    return unit;
}

// "1.9 GiB", or in bytes where rounded amounts would look as if the request fitted.
std::string amount_words(const Denial& denial, std::uint64_t amount) {
    const auto sum = denial.used + denial.requested;
    const bool rounded = info(denial.resource).unit == Unit::bytes && amount % unit_of(amount) != 0;
    const bool hidden = sum > denial.limit && sum - denial.limit < unit_of(std::max(denial.used, denial.requested)) / 4;
    return rounded && hidden ? text("{} bytes", amount) : format_amount(denial.resource, amount);
}

[[gnu::noinline]] Recorded record(Account& account, std::uint32_t device_index, const Denial& denial, Mode mode,
                                  int error, Reason reason, const Identity& who) {
    return record_or_repeat(account.ledger(), std::hash<std::string>()(account.here()),
                            event_of(device_index, denial, mode, error, reason, who));
}

[[gnu::noinline]] std::string rate_line_with(const std::string& helped, std::string_view device, const Denial& denial, Mode mode, int error,
                                             const std::string& tenant, const Identity& who, std::uint32_t kept_back) {
    const auto verdict = mode == Mode::audit ? std::string("would be denied (audit)") : text("denied ({})", deny_errno_name(error));
    return text("{} on {} {}: {} may have {} a second{}, and pid {} ({}) would have waited longer than max_delay for {}; {}{}",
                info(denial.resource).name, device, verdict, holder_word(denial, tenant), format_amount(denial.resource, denial.limit),
                denial.total ? " over all devices" : "", who.pid, who.comm, format_amount(denial.resource, denial.requested), helped,
                kept_back == 0 ? "" : text("; {} more suppressed since the last line like it", kept_back));
}

// `helped`: what helps. It is found before, since both take much stack.
[[gnu::noinline]] std::string line_with(const std::string& helped, std::string_view device, const Denial& denial,
                                        Mode mode, int error, const std::string& tenant, const Identity& who,
                                        std::uint32_t kept_back) {
    const auto resource = denial.resource;
    const auto verdict =
        mode == Mode::audit ? std::string("would be denied (audit)") : text("denied ({})", deny_errno_name(error));
    const auto holder = holder_word(denial, tenant);
    return text("{} on {} {}: {} uses {} of {}{}, {} more asked by pid {} ({}); {}{}{}", info(resource).name, device,
                verdict, holder, amount_words(denial, denial.used), amount_words(denial, denial.limit),
                denial.total ? " over all devices" : "", amount_words(denial, denial.requested), who.pid, who.comm,
                helped, denial.proved || mode == Mode::audit ? "" : " (the ledger was too busy to prove it)",
                kept_back == 0 ? "" : text("; {} more suppressed since the last line like it", kept_back));
}

}  // namespace

std::string denial_line(std::string_view device, const Denial& denial, Mode mode, int error, const Circumstances& found,
                        const Identity& who, std::uint32_t kept_back) {
    const auto helped = helps(device, denial, found);
    if (is_rate(denial.resource)) return rate_line_with(helped, device, denial, mode, error, found.tenant, who, kept_back);
    return line_with(helped, device, denial, mode, error, found.tenant, who, kept_back);
}

void report(Account& account, std::uint32_t device_index, DeviceKey device, const Denial& denial, Mode mode,
            int error) {
    const auto who = identity_of_self();
    const auto reason = reason_of(account.policy(), device, denial);
    const auto recorded = record(account, device_index, denial, mode, error, reason, who);
    if (!recorded.say) return;
    // 250 bytes, too many for a small stack.
    const std::unique_ptr<Circumstances> found(new Circumstances(
        circumstances_of(account.directory(), account.here(), account.tenant(), device.name, denial, reason)));
    found->own = account.ledger().usage(account.owner().slot(), device_index, denial.resource);
    say(LogLevel::warning, denial_line(device.name, denial, mode, error, *found, who, recorded.kept_back));
}

void report_suppressed() noexcept {
    const NoCancellation guard;
    const KeepErrno keep;
    try {
        if (const auto count = take_kept_back(); count != 0)
            say(LogLevel::warning,
                text("{} more suppressed, of denials like the last ones; rdmaquota events counts them", count));
    } catch (...) {  // no memory: without a word
    }
}

void report_unavailable(std::string_view device, int error) {
    say(LogLevel::warning, text("object on {} denied ({}): the ledger cannot be used and the policy says "
                                "on_unavailable = deny; run 'rdmaquota reload' as root",
                                device, deny_errno_name(error)));
}

}  // namespace rdmaquota::provider
