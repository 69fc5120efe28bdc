#include "tools/rdmaquotad/dynamic/dynamic_limits.hpp"

#include <algorithm>
#include <ctime>

#include <fmt/core.h>

#include "tools/common/devices.hpp"

namespace rdmaquota {
namespace {

std::uint64_t cell(const LimitsSegment& policy, const ChangedLimit& change) {
    return load_limit(policy.row(change.scope, change.device), change.resource);
}

bool take_note(LimitsWriter& writer, const ChangedLimit& change) {
    return writer.take_note(change.scope, change.device, change.resource);
}

bool same_cell(const ChangedLimit& change, Scope scope, const std::string& device, Resource resource) {
    return change.scope == scope && change.device == device && change.resource == resource;
}

}  // namespace

DynamicLimits::DynamicLimits(QuotaDirectory& node, NodeEvents& events, Usage usage, Capacity capacity)
    : node_(node), events_(events), usage_(std::move(usage)), capacity_(std::move(capacity)) {}

void DynamicLimits::start(std::vector<DynamicRule> rules) {
    rules_ = DynamicRules(std::move(rules));
    changes_ = limit_changes(node_.directory(), node_.policy());
    said_unwritable_ = false;
    if (changes_.empty() && node_.writable()) write_record();  // a record that is there belongs to another policy
}

ChangedLimit* DynamicLimits::find(Scope scope, const std::string& device, Resource resource) {
    const auto found = std::find_if(changes_.begin(), changes_.end(), [&](const ChangedLimit& change) {
        return same_cell(change, scope, device, resource);
    });
    return found == changes_.end() ? nullptr : &*found;
}

Surroundings DynamicLimits::surroundings() {
    Surroundings now;
    now.devices = machine_devices();
    now.usage = usage_;
    now.capacity = capacity_;
    now.configured = [this](Scope scope, const std::string& device, Resource resource) {
        const auto* change = find(scope, device, resource);
        return change == nullptr ? node_.policy().limit(scope, device, resource)
                                 : configured_limit(node_.policy(), *change);
    };
    now.changed = [this](Scope scope, const std::string& device, Resource resource) {
        return find(scope, device, resource) != nullptr;
    };
    return now;
}

// A limit that an administrator set meanwhile is not restored, even when it equals the one that was set here.
void DynamicLimits::forget_foreign(LimitsWriter& writer) {
    const auto forgotten = std::erase_if(changes_, [&writer](const ChangedLimit& change) {
        const auto now = cell(writer.policy(), change);
        return take_note(writer, change) || (now != change.limit && now != change.from);
    });
    if (forgotten != 0) write_record();
}

void DynamicLimits::write_record() {
    if (const auto written = write_limit_changes(node_.directory(), node_.policy(), changes_); !written)
        log(Priority::error, written.error());
}

void DynamicLimits::apply() {
    if (rules_.size() == 0 && changes_.empty()) return;
    if (!node_.writable()) {
        if (!said_unwritable_)
            log(Priority::warning, "the policy has dynamic rules, but limits cannot be changed from here");
        said_unwritable_ = true;
        return;
    }
    auto writer = policy_writer();
    if (!writer) return;
    forget_foreign(*writer);
    change_to(rules_.evaluate(surroundings()), *writer);
}

// None for a policy that was just published: rules and record belong to the one before.
std::optional<LimitsWriter> DynamicLimits::policy_writer() {
    auto writer = node_.policy_writer();
    if (!writer) log(Priority::warning, writer.error());
    if (!writer || node_.policy().superseded()) return std::nullopt;
    return std::move(*writer);
}

void DynamicLimits::change_to(const std::vector<WantedLimit>& wanted, LimitsWriter& writer) {
    std::vector<ChangedLimit> record;
    for (const auto& limit : wanted) {
        const auto* was = find(limit.scope, limit.device, limit.resource);
        auto change = was != nullptr ? *was : ChangedLimit{};
        change.scope = limit.scope;
        change.device = limit.device;
        change.resource = limit.resource;
        change.from = cell(node_.policy(), change);
        if (was == nullptr) change.configured = change.from;
        change.limit = limit.limit;
        if (change.from != change.limit) {
            change.reason = limit.reason;
            change.since_s = static_cast<std::uint64_t>(std::time(nullptr));
        }
        record.push_back(std::move(change));
    }
    std::vector<ChangedLimit> back;
    for (const auto& change : changes_)
        if (std::none_of(record.begin(), record.end(), [&change](const ChangedLimit& kept) {
                return same_cell(kept, change.scope, change.device, change.resource);
            }))
            back.push_back(change);
    put(std::move(record), back, writer);
}

// Sets the limits of `record` and restores those of `back`. False when that could not be recorded first.
bool DynamicLimits::put(std::vector<ChangedLimit> record, const std::vector<ChangedLimit>& back, LimitsWriter& writer) {
    const bool nothing = back.empty() && std::all_of(record.begin(), record.end(), [](const ChangedLimit& change) {
                             return change.from == change.limit;
                         });
    if (nothing) return true;
    auto both = record;
    both.insert(both.end(), back.begin(), back.end());
    if (const auto written = write_limit_changes(node_.directory(), node_.policy(), both); !written) {
        log(Priority::error, "no limit is changed: " + written.error());
        return false;
    }
    const auto& policy = writer.policy();
    const auto set = [&writer](const ChangedLimit& change, std::uint64_t limit) {
        const auto done = writer.set(change.scope, change.device, change.resource, limit);
        if (!done) log(Priority::error, done.error());
        return static_cast<bool>(done);
    };
    for (const auto& change : back) {
        const auto before = cell(policy, change);
        if (set(change, change.configured)) emit("restored", change, before, configured_limit(policy, change));
    }
    for (auto& change : record) {
        if (change.from == change.limit) continue;
        const auto before = change.from == unset ? configured_limit(policy, change) : change.from;
        take_note(writer, change);  // an earlier note was dealt with in forget_foreign
        if (set(change, change.limit))
            emit(change.limit < before ? "tightened" : "relaxed", change, before, change.limit);
        change.from = change.limit;
    }
    changes_ = std::move(record);
    write_record();
    return true;
}

void DynamicLimits::restore() {
    if (!node_.usable() || !node_.writable()) return;
    auto writer = policy_writer();
    if (!writer) return;
    forget_foreign(*writer);
    put({}, std::vector(changes_), *writer);
}

void DynamicLimits::emit(std::string_view kind, const ChangedLimit& change, std::uint64_t before, std::uint64_t after) {
    const auto who = change.scope == Scope::process ? "each process" : "the tenant";
    const auto why = kind == "restored" ? std::string("as configured") : change.reason;
    events_.emit(Priority::notice, kind,
                 Json{{"scope", name(change.scope)},
                      {"device", change.device},
                      {"resource", info(change.resource).name},
                      {"before", limit_json(before)},
                      {"limit", limit_json(after)},
                      {"reason", why}},
                 fmt::format("{} of {} on {}: {} -> {}; {}", info(change.resource).name, who, change.device,
                             format_amount(change.resource, before), format_amount(change.resource, after), why));
}

}  // namespace rdmaquota
