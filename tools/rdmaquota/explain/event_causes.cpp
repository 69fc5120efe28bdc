#include <algorithm>
#include <optional>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "shm/remedy.hpp"
#include "tools/common/events/event_text.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/process/memory_lock.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/explain/cause.hpp"
#include "tools/rdmaquota/explain/device_figures.hpp"
#include "tools/rdmaquota/explain/event_process.hpp"

namespace rdmaquota {
namespace {

std::string times(const Json& event) {
    const auto count = number_member(event, "count");
    return count < 2 ? "" : fmt::format(", {} times", count);
}

std::string program_words(const Json& event) {
    return fmt::format("{} ({})", pid_words(event), printable(text_member(event, "comm")));
}

std::string process_words(const Json& event) { return program_words(event) + times(event); }

Reason reason_of(const Json& event) {
    const auto word = text_member(event, "reason");
    for (const auto reason : {Reason::rule, Reason::grant, Reason::soft, Reason::other})
        if (name(reason) == word) return reason;
    return Reason::configured;
}

std::string kind_of(Reason reason, std::string_view configured) {
    switch (reason) {
        case Reason::rule:
            return "dynamic rule";
        case Reason::grant:
            return "share";
        case Reason::soft:
            return "soft limit";
        default:
            return std::string(configured);
    }
}

Denial denial_of(const Json& event, Resource resource) {
    const auto scope = text_member(event, "scope");
    Denial denial{resource, scope.starts_with("process") ? Scope::process : Scope::tenant, scope.ends_with("_total")};
    denial.used = number_member(event, "used");
    denial.limit = number_member(event, "limit");
    denial.requested = number_member(event, "requested");
    return denial;
}

std::uint64_t limit_now(const TenantPlace& place, const std::string& device, const Denial& denial) {
    const auto limits = LimitsSegment::open(limits_path(place.here));
    return limits ? limits->limit(denial.scope, denial.total ? std::string(total_device) : device, denial.resource) : denial.limit;
}

std::string helps_with(const Json& event, const Denial& denial, const std::string& directory) {
    const auto tenant = text_member(event, "tenant"), device = text_member(event, "device");
    const auto reason = reason_of(event);
    const auto place = find_tenant(directory, is_own_directory(directory) ? "" : tenant);
    if (!place) return {};
    if (const auto now = limit_now(*place, device, denial); denial.limit < now && reason == Reason::configured)
        return fmt::format("the limit is {} by now", format_amount(denial.resource, now));
    return printable(remedy(device, denial, circumstances_of(directory, place->here, tenant, device, denial, reason)));
}

// "commands_per_s on mlx5_0: tenant physics may have 2000 a second"
std::string rate_words(const Json& event, const Denial& denial) {
    return fmt::format("{} on {}: {} may have {} a second{}", info(denial.resource).name, printable(text_member(event, "device")),
                       denial.scope == Scope::process ? "the process" : "tenant " + printable(text_member(event, "tenant")),
                       format_amount(denial.resource, denial.limit), denial.total ? " over all devices" : "");
}

Cause of_delay(const Json& event, Resource rate, const std::string& directory) {
    const auto denial = denial_of(event, rate);
    const auto calls = number_member(event, "count");
    return {"slow, not refused",
            fmt::format("{}; {} call{} of {} {} delayed by {} in all since {}", rate_words(event, denial), calls, calls == 1 ? "" : "s",
                        program_words(event), calls == 1 ? "was" : "were", seconds_words(number_member(event, "used")),
                        local_time(text_member(event, "first_time")).substr(0, 19)),
            helps_with(event, denial, directory)};
}

Cause of_rate(const Json& event, Resource rate, const std::string& directory) {
    const auto denial = denial_of(event, rate);
    return {kind_of(reason_of(event), "rate"),
            fmt::format("{}, and {} {} longer than max_delay for {}{}", rate_words(event, denial), program_words(event),
                        text_member(event, "kind") == "would_deny" ? "would have been denied, since it had to wait" : "would have waited",
                        format_amount(rate, denial.requested), times(event)),
            helps_with(event, denial, directory)};
}

Cause of_denial(const Json& event, Resource resource, const std::string& directory) {
    const auto denial = denial_of(event, resource);
    const auto tenant = text_member(event, "tenant"), device = text_member(event, "device");
    const bool denied = text_member(event, "kind") != "would_deny";
    Cause cause{kind_of(reason_of(event), "quota"), {}, helps_with(event, denial, directory)};
    cause.text =
        fmt::format("{} on {}: {} {} {} of {}{}, {} more asked by {}{}", info(resource).name, printable(device),
                    denial.scope == Scope::process ? "the process" : "tenant " + printable(tenant),
                    denied ? "used" : "would have been denied; it used", format_amount(resource, denial.used),
                    format_amount(resource, denial.limit), denial.total ? " over all devices" : "",
                    format_amount(resource, denial.requested), process_words(event),
                    text_member(event, "kind") == "unproved" ? "; the ledger was too busy to prove it" : "");
    return cause;
}

// Little room is none: a driver asks for more than the object, and in parts.
constexpr std::uint64_t little = 1 << 20;

struct Bound {
    std::uint64_t used = 0, limit = UINT64_MAX;
    bool is_met_by(std::uint64_t more) const { return limit != UINT64_MAX && limit - std::min(limit, used) < std::max(more, little); }
    std::string words() const { return fmt::format("{} of {}", format_amount(Resource::mr_bytes, used), format_amount(Resource::mr_bytes, limit)); }
};

Bound bound_of(const Json& bounds, const char* used, const char* limit) {
    Bound bound{number_member(bounds, used)};
    if (const auto found = bounds.find(limit); found != bounds.end() && found->is_number_unsigned()) bound.limit = found->get<std::uint64_t>();
    return bound;
}

// What bounded the process when its call failed with ENOMEM; none where that was not noted, or nothing of it did.
std::optional<Cause> of_bounds(const Json& event, Resource resource, const std::string& text) {
    const auto found = event.find("process_bounds");
    if (found == event.end() || !found->is_object()) return std::nullopt;
    const auto& bounds = *found;
    const auto more = info(resource).unit == Unit::bytes ? number_member(event, "requested") : 0;
    const auto space = bound_of(bounds, "address_space", "address_space_limit");
    const auto pinned = bound_of(bounds, "pinned", "pinned_limit");
    const auto group = bound_of(bounds, "memory_cgroup", "memory_cgroup_limit");
    if (pinned.is_met_by(more))
        return Cause{"memory lock", text + "; it had pinned " + pinned.words() + " that RLIMIT_MEMLOCK lets it pin",
                     "raise RLIMIT_MEMLOCK: ulimit -l in the shell, LimitMEMLOCK= in a unit, or memlock in limits.conf(5)"};
    if (space.is_met_by(0))
        return Cause{"address space", text + "; its address space was " + space.words() + " that RLIMIT_AS lets it have",
                     "raise RLIMIT_AS: ulimit -v in the shell, LimitAS= in a unit, or as in limits.conf(5)"};
    if (!bounds.value("can_map", true))
        return Cause{"mappings", text + "; it could not map even one page more",
                     "raise vm.max_map_count (sysctl), or have the program map less: a QP or CQ takes a mapping or more"};
    if (group.is_met_by(more))
        return Cause{"memory cgroup", text + "; its memory cgroup, or one above it, had used " + group.words(),
                     "raise memory.max of that cgroup: the kernel's memory for objects counts in it"};
    return std::nullopt;
}

// For an event of an older provider, which noted no bounds. A registration that the kernel refuses with ENOMEM has met the bound of memory
// that may be pinned, more often than not.
std::optional<Cause> of_pinning(const Json& event, const std::string& text) {
    const bool here = is_pid_here(event);
    const auto lock = here ? memory_lock(static_cast<int>(number_member(event, "pid"))) : std::nullopt;
    if (lock && !lock->bounds()) return std::nullopt;
    const auto bound =
        lock ? fmt::format("; it may pin {}, of which {} are pinned", format_amount(Resource::mr_bytes, lock->limit),
                           format_amount(Resource::mr_bytes, lock->pinned))
             : fmt::format("; its RLIMIT_MEMLOCK is not known, as the process {}",
                           here ? "has ended" : "is in a container");
    return Cause{"memory lock", text + bound,
                 "raise RLIMIT_MEMLOCK: ulimit -l in the shell, LimitMEMLOCK= in a unit, or memlock in limits.conf(5)"};
}

// The device is blamed only where its figures say so.
Cause of_figures(const Json& event, Resource resource, const std::string& text, const std::string& directory) {
    const auto figures = device_figures(directory, text_member(event, "device"), resource);
    const auto most = figures.found != 0 ? figures.found : figures.told;
    const bool nearly_full = most != 0 && figures.in_use + number_member(event, "requested") > most - most / 10;
    if (nearly_full || text_member(event, "error") == "ENOSPC")
        return {"device", text + figures.words(resource),
                "the adapter, its firmware or its driver has no more, which may be less than it tells: end "
                "programs that hold some, and limit it to what there is"};
    return {"kernel", text + figures.words(resource) + "; none of that is full, nor was what bounds the process, as far as it is known",
            "look into the kernel's log (dmesg): the kernel, the driver or the firmware had no memory, or no more of what it makes "
            "beside the object"};
}

Cause of_device(const Json& event, Resource resource, const std::string& directory) {
    const auto device = text_member(event, "device"), error = text_member(event, "error");
    const auto text =
        fmt::format("{} on {}: the call itself failed ({}) for {}, which asked for {} while tenant {} used {}",
                    info(resource).name, printable(device), printable(error), process_words(event),
                    format_amount(resource, number_member(event, "requested")), printable(text_member(event, "tenant")),
                    format_amount(resource, number_member(event, "used")));
    if (error == "ENOMEM") {
        if (auto bound = of_bounds(event, resource, text)) return *bound;
        const auto noted = event.find("process_bounds");
        if (resource == Resource::mr_bytes && (noted == event.end() || !noted->is_object()))
            if (auto pinning = of_pinning(event, text)) return *pinning;
    }
    if (error == "EAGAIN")
        return {"device", text + device_figures(directory, device, resource).words(resource),
                "look at rdma.max of the process's cgroup; else the driver has no more of what it makes "
                "beside the object, such as doorbell pages (UARs)"};
    return of_figures(event, resource, text, directory);
}

// Where the event has the limit that had no room.
std::string allowing(const Json& event) {
    const auto resource = find_resource(text_member(event, "resource"));
    const auto needed = number_member(event, "used") + number_member(event, "requested");
    if (!resource || needed <= number_member(event, "limit", unlimited)) return "rdmaquota guard says what is in use by the kernel's count";
    return fmt::format("to allow it: rdmaquota set {} {} {}={}{}", printable(text_member(event, "tenant")), printable(text_member(event, "device")),
                       info(*resource).name, format_limit(*resource, needed), text_member(event, "scope") == "process" ? " --process" : "");
}

Cause of_guard(const Json& event) {
    return {"guard", fmt::format("the kernel's guard: {}", printable(text_member(event, "text"))), allowing(event)};
}

}  // namespace

Causes causes_of(const Json& event, const std::string& directory) {
    const auto kind = text_member(event, "kind");
    if (kind == "backstop_denied")
        return {{"rdma cgroup", printable(text_member(event, "text")),
                 "raise rdma.max of that cgroup, or change `backstop` in the policy"}};
    if (event.contains("source"))
        return kind == "refused" || kind == "exceeded" || kind == "killed" ? Causes{of_guard(event)} : Causes{};
    const auto resource = find_limit(text_member(event, "resource"));
    if (!resource) return {};
    if (kind == "delayed") return {of_delay(event, *resource, directory)};
    if (kind == "refused_by_device") return {of_device(event, *resource, directory)};
    if (kind == "denied" || kind == "would_deny" || kind == "unproved")
        return {is_rate(*resource) ? of_rate(event, *resource, directory) : of_denial(event, *resource, directory)};
    return {};
}

}  // namespace rdmaquota
