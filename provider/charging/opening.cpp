#include "provider/charging/opening.hpp"

#include <fmt/core.h>

#include "provider/host/environment.hpp"
#include "provider/host/log_target.hpp"
#include "shm/paths.hpp"

namespace rdmaquota::provider {
namespace {

void add(std::string& text, const ResourceInfo& resource, std::string_view whose, std::uint64_t limit) {
    if (limit == unlimited) return;
    text += fmt::format("{}{} {}{}", text.empty() ? "" : ", ", resource.name, format_amount(resource.id, limit), whose);
}

std::string limits_in(const LimitsSegment& policy, DeviceKey device) {
    std::string text;
    for (const auto& row : limit_table) {
        add(text, row, "", policy.limit(Scope::tenant, device, row.id));
        add(text, row, " over all devices", policy.limit(Scope::tenant, total_device, row.id));
        add(text, row, " a process", policy.limit(Scope::process, device, row.id));
        add(text, row, " a process over all devices", policy.limit(Scope::process, total_device, row.id));
    }
    return text.empty() ? "nothing is limited" : text;
}

bool tightens(const LimitRow& row) {
    for (const auto limit : row)
        if (limit != unset) return true;
    return false;
}

std::string_view environment_words() {
    const auto& own = environment();
    const bool any =
        tightens(own.process) || tightens(own.tenant) || !own.process_devices.empty() || !own.tenant_devices.empty();
    return any ? ", tightened by this program's environment" : "";
}

}  // namespace

std::string activity_line(Account& account, const std::string& rule) {
    const auto& policy = account.policy();
    const auto who = identity_of_self();
    return fmt::format("active for pid {} ({}), mode {}: tenant {} ({}), limits from {}{}", who.pid, who.comm,
                       name(policy.mode()), account.tenant(), rule, limits_path(account.here()), environment_words());
}

void report_opening(const DevicePort& device, const Accounts& accounts) {
    if (!says(LogLevel::debug)) return;
    for (std::size_t i = 0; i < accounts.count; ++i)
        say(LogLevel::debug, fmt::format("{} is opened in tenant {}: {}", device.name(), accounts.account[i]->tenant(),
                                         limits_in(accounts.account[i]->policy(), device.key())));
}

}  // namespace rdmaquota::provider
