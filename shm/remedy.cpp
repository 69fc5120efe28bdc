#include "shm/remedy.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <unistd.h>

#include "policy/tenant.hpp"
#include "policy/text.hpp"
#include "shm/atomic.hpp"
#include "shm/paths.hpp"
#include "shm/policy/share_bound.hpp"

namespace rdmaquota {
namespace {

// Functions that format are not inlined, so that their frames do not add up: a denied program's stack may be small.

bool of_process(const Denial& denial) noexcept { return denial.scope == Scope::process; }

std::string_view row_of(std::string_view device, const Denial& denial) noexcept {
    return denial.total ? total_device : device;
}

// The amount to propose; for a rate twice as much, and at least what was asked for at once.
std::uint64_t needed(const Denial& denial) noexcept {
    if (is_rate(denial.resource)) return std::min(std::max(2 * std::min(denial.limit, max_amount), denial.requested), max_amount);
    return std::min(denial.used + denial.requested, max_amount);
}

std::string command(const Circumstances& found, std::string_view what) {
    return is_node_directory(found.directory) ? text("rdmaquota {}", what)
                                              : text("rdmaquota --dir {} {}", found.directory, what);
}

std::string setting(const Denial& denial, std::uint64_t amount) {
    return text("{}={}", info(denial.resource).name, format_limit(denial.resource, amount));
}

// Without a name, --process is for every tenant that says nothing else.
std::string tenant_word(const Denial& denial, const Circumstances& found) {
    return found.tenant == default_tenant && !of_process(denial) ? "" : found.tenant + " ";
}

[[gnu::noinline]] std::string change(std::string_view device, const Denial& denial, const Circumstances& found) {
    const auto* process = of_process(denial) ? " --process" : "";
    if (!found.set_for.empty() && found.of_file >= needed(denial))
        return command(found,
                       text("unset {}{} {}{}", tenant_word(denial, found),
                            found.set_for == any_device ? "'*'" : found.set_for, info(denial.resource).name, process));
    return command(found,
                   text("set {}{} {}{}{}", tenant_word(denial, found), row_of(device, denial),
                        setting(denial, needed(denial)), process, found.reason == Reason::soft ? " --soft" : ""));
}

// Its share is not enough: what is above it has to grow, or some of that has to be reserved.
[[gnu::noinline]] std::string larger_share(std::string_view device, const Denial& denial, const Circumstances& found) {
    const auto reserve = command(
        found, text("set {} {} {} --guarantee", found.tenant, row_of(device, denial), setting(denial, needed(denial))));
    if (found.above.empty()) return reserve;
    const auto more = std::min(found.above_limit + needed(denial) - std::min(needed(denial), denial.limit), max_amount);
    return text("{}, or to reserve it: {}",
                command(found, text("set {} {} {}", found.above, row_of(device, denial), setting(denial, more))),
                reserve);
}

[[gnu::noinline]] std::string holder(const Denial& denial, const Circumstances& found) {
    const auto why = found.why.empty() ? "" : text(" ({})", found.why);
    switch (found.reason) {
        case Reason::rule:
            return text("a dynamic rule sets this limit at present{}", why);
        case Reason::grant:
            return text("that is its share of what {} may use, and other tenants have the rest{}",
                        found.above.empty() ? "the tenants above" : found.above,
                        !is_rate(denial.resource) && denial.used > denial.limit ? text("; it has {} more than its share",
                                                          format_amount(denial.resource, denial.used - denial.limit))
                                                   : "");
        case Reason::cluster:
            return "that is what this node may use at present of what the cluster lets the tenant use on all nodes";
        case Reason::soft:
            return "this soft limit has been exceeded for longer than the grace period";
        default:
            return "the limit is lower than configured at present; rdmaquota show says why";
    }
}

// What one who may not change limits can do without asking.
[[gnu::noinline]] std::string own_means(const Denial& denial, const Circumstances& found) {
    if (is_rate(denial.resource)) return "ask for it more slowly";
    if (denial.requested > denial.limit) return "the request alone is larger than the limit";
    if (of_process(denial)) return "destroy what this process no longer needs";
    if (!found.own) return {};
    if (found.own == 0) return "this process has none of it; other processes of the tenant have all";
    return text("this process has {} of it: destroy what it no longer needs",
                format_amount(denial.resource, *found.own));
}

constexpr std::string_view allows = "to allow it: ";

std::string what_helps(std::string_view device, const Denial& denial, const Circumstances& found) {
    switch (found.reason) {
        case Reason::rule:
            return "the rule is in the policy file";
        case Reason::grant:
            return std::string(allows) + larger_share(device, denial, found);
        case Reason::cluster:
            return "an administrator of the cluster sees with 'rdmaquota cluster show' which nodes hold the rest";
        case Reason::configured:
        case Reason::soft:
            return std::string(allows) + change(device, denial, found);
        default:
            return {};
    }
}

// The row that says it: the device's own, else that of every device.
std::string_view holding_row(const LimitsSegment& limits, std::string_view device, const Denial& denial) {
    const bool own = load_limit(limits.row(denial.scope, row_of(device, denial)), denial.resource) != unset;
    return own || denial.total || is_port(device) ? row_of(device, denial) : any_device;
}

void read_origin(const LimitsSegment& limits, std::string_view device, const Denial& denial, Circumstances& found) {
    const auto row = holding_row(limits, device, denial);
    const auto* origin = limits.origin(denial.scope, row, denial.resource);
    if (origin == nullptr) return;
    if (found.reason != Reason::configured) found.why.assign(origin->why, strnlen(origin->why, sizeof origin->why));
    if (!(load(origin->own) & own_by_set) || found.reason != Reason::configured) return;
    const auto* any = row == any_device || stands_alone(row)
                          ? nullptr
                          : limits.origin(denial.scope, any_device, denial.resource);
    found.set_for = row;
    found.of_file = load(origin->file);
    if (found.of_file == unset && any != nullptr) found.of_file = load(any->configured);
    found.of_file = found.of_file == unset ? unlimited : limits.amount(found.of_file, device, denial.resource);
}

}  // namespace

bool is_soft(const LimitsSegment& limits, DeviceKey device, const Denial& denial) noexcept {
    return denial.scope == Scope::tenant && !denial.total && !is_rate(denial.resource) && denial.limit == limits.soft(device, denial.resource) &&
           denial.limit < limits.limit(Scope::tenant, device, denial.resource);
}

Reason reason_of(const LimitsSegment& limits, DeviceKey device, const Denial& denial) noexcept {
    if (is_soft(limits, device, denial)) return Reason::soft;
    return limits.reason(denial.scope, denial.total ? DeviceKey(total_device) : device, denial.resource);
}

Circumstances circumstances_of(const std::string& directory, const std::string& here, const std::string& tenant,
                               std::string_view device, const Denial& denial, Reason reason) {
    Circumstances found{directory, tenant, reason};
    const auto path = limits_path(here);
    found.may_change = faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) == 0;
    if (const auto limits = LimitsSegment::open(path, LimitsSegment::Parts::all))
        read_origin(*limits, device, denial, found);
    if (found.reason == Reason::grant)
        if (auto above = share_bound(directory, tenant, row_of(device, denial), denial.resource)) {
            found.above = std::move(above->tenant);
            found.above_limit = above->limit;
        }
    return found;
}

std::string remedy(std::string_view device, const Denial& denial, const Circumstances& found) {
    const auto held = found.reason == Reason::configured ? "" : holder(denial, found);
    const auto helps = what_helps(device, denial, found);
    if (found.may_change) return text("{}{}{}", held, held.empty() || helps.empty() ? "" : "; ", helps);
    std::string advice = held;
    const auto add = [&](const std::string& part) { advice += (advice.empty() || part.empty() ? "" : "; ") + part; };
    add(own_means(denial, found));
    if (helps.starts_with(allows)) add("an administrator can allow it with: " + helps.substr(allows.size()));
    return advice;
}

}  // namespace rdmaquota
