#include "provider/charging/denial.hpp"

#include <algorithm>

#include <fmt/core.h>

#include "provider/host/environment.hpp"
#include "provider/host/log_target.hpp"
#include "shm/paths.hpp"

namespace rdmaquota::provider {
namespace {

bool of_process(const Denial& denial) noexcept { return denial.scope == Scope::process; }

// No command of the administrator raises a limit that the environment sets.
bool from_environment(std::string_view device, const Denial& denial) {
    const auto& own = environment();
    const auto r = index(denial.resource);
    if (denial.total) return (of_process(denial) ? own.process : own.tenant)[r] == denial.limit;
    const auto& devices = of_process(denial) ? own.process_devices : own.tenant_devices;
    return std::any_of(devices.begin(), devices.end(),
                       [&](const auto& entry) { return entry.device == device && entry.limits[r] == denial.limit; });
}

// What `set` would not change, or not for long.
std::string_view held_by(Reason reason) noexcept {
    switch (reason) {
        case Reason::configured:
            return {};
        case Reason::rule:
            return "a dynamic rule holds the limit there at present; rdmaquota show says which";
        case Reason::upgrade:
            return "programs that run with an older rdmaquota have the rest; rdmaquota show says how much";
        case Reason::grant:
            return "the rest of what the tenants above it may use is others' at present; rdmaquota show says how much is its "
                   "share";
        case Reason::soft:
            return "this soft limit has been exceeded for longer than the grace period; use less, or have it raised with "
                   "rdmaquota set --soft";
        default:
            return "it is less than configured at present; rdmaquota show says why";
    }
}

std::string remedy(std::string_view device, const Denial& denial, const std::string& directory,
                   const std::string& tenant, Reason reason) {
    if (from_environment(device, denial)) return "the limit comes from an environment variable of this program";
    if (const auto held = held_by(reason); !held.empty()) return std::string(held);
    const bool node = directory == system_directory;
    const auto needed = std::min(denial.used + denial.requested, max_amount);
    return fmt::format("to allow it: rdmaquota {}set {}{} {}={}{}",
                       node ? "" : fmt::format("--dir {} ", directory),
                       // Without a name, --process is for every tenant that says nothing else.
                       tenant == default_tenant && !of_process(denial) ? "" : tenant + " ", denial.total ? total_device : device,
                       info(denial.resource).name, format_limit(denial.resource, needed),
                       of_process(denial) ? " --process" : "");
}

Event event_of(std::uint32_t device_index, const Denial& denial, Mode mode, int error, const Identity& who) {
    Event event{};
    event.kind = mode == Mode::audit ? EventKind::would_deny : denial.proved ? EventKind::denied : EventKind::unproved;
    event.scope = event_scope(denial.scope, denial.total);
    event.device = device_index;
    event.resource = static_cast<std::uint32_t>(index(denial.resource));
    event.pid = who.pid;
    event.uid = who.uid;
    event.error = mode == Mode::audit ? 0 : static_cast<std::uint32_t>(error);
    event.used = denial.used;
    event.limit = denial.limit;
    event.requested = denial.requested;
    who.comm.copy(event.comm, sizeof event.comm - 1);
    return event;
}

Reason reason_of(const LimitsSegment& limits, std::string_view device, const Denial& denial) {
    if (is_soft(limits, device, denial)) return Reason::soft;
    return limits.reason(denial.scope, denial.total ? total_device : device, denial.resource);
}

}  // namespace

bool is_soft(const LimitsSegment& limits, std::string_view device, const Denial& denial) noexcept {
    return denial.scope == Scope::tenant && !denial.total && denial.limit == limits.soft(device, denial.resource) &&
           denial.limit < limits.limit(Scope::tenant, device, denial.resource);
}

std::string denial_line(std::string_view device, const Denial& denial, Mode mode, int error,
                        const std::string& directory, const std::string& tenant, Reason reason, const Identity& who) {
    const auto resource = denial.resource;
    const auto verdict = mode == Mode::audit ? std::string("would be denied (audit)")
                                             : fmt::format("denied ({})", deny_errno_name(error));
    const auto holder = of_process(denial) ? "this process" : "tenant " + tenant;
    return fmt::format("{} on {} {}: {} uses {} of {}{}, {} more asked by pid {} ({}); {}{}", info(resource).name,
                       device, verdict, holder, format_amount(resource, denial.used),
                       format_amount(resource, denial.limit), denial.total ? " over all devices" : "",
                       format_amount(resource, denial.requested), who.pid, who.comm, remedy(device, denial, directory, tenant, reason),
                       denial.proved || mode == Mode::audit ? "" : " (the ledger was too busy to prove it)");
}

void report(Account& account, std::uint32_t device_index, std::string_view device, const Denial& denial, Mode mode,
            int error) {
    const auto who = identity_of_self();
    account.ledger().record(event_of(device_index, denial, mode, error, who));
    say(LogLevel::warning, denial_line(device, denial, mode, error, account.directory(), account.tenant(),
                                      reason_of(account.policy(), device, denial), who));
}

void report_unavailable(std::string_view device, int error) {
    say(LogLevel::warning, fmt::format("object on {} denied ({}): the ledger cannot be used and the policy says "
                                       "on_unavailable = deny; run 'rdmaquota reload' as root",
                                       device, deny_errno_name(error)));
}

}  // namespace rdmaquota::provider
