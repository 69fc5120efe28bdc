#include "tools/common/sidecar_files.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <optional>

#include <fmt/core.h>

#include "tools/common/event_text.hpp"
#include "tools/common/file_text.hpp"

namespace rdmaquota {
namespace {

std::string sidecar_path(const std::string& directory) { return directory + "/sidecar.json"; }
std::string changes_path(const std::string& directory) { return directory + "/changed.json"; }

Result<void> replace_json(const std::string& path, const Json& json) { return replace_file(path, dump(json) + "\n"); }

// nullopt when there is no file; a discarded value when it is no JSON.
std::optional<Json> read_file(const std::string& path) {
    if (::access(path.c_str(), R_OK) != 0) return std::nullopt;
    return Json::parse(file_text(path), nullptr, false);
}

Json cell_json(std::uint64_t limit) { return limit == unset ? Json("unset") : limit_json(limit); }

std::uint64_t cell_of(const Json& json) {
    if (json.is_null()) return unlimited;
    return json.is_string() ? unset : json.get<std::uint64_t>();
}

Resource resource_of(const Json& json) {
    const auto found = find_resource(json.get<std::string>());
    if (!found) throw std::invalid_argument("unknown resource");
    return *found;
}

Json rule_json(const DynamicRule& rule) {
    return Json{{"device", rule.device},
                {"watch", info(rule.watch).name},
                {"of", rule.of == CapacityOf::amount ? Json(rule.capacity) : Json(name(rule.of))},
                {"above", rule.above},
                {"below", rule.below},
                {"limit", info(rule.limit).name},
                {"scope", name(rule.scope)},
                {"factor", rule.factor},
                {"floor", limit_json(rule.floor)}};
}

void read_capacity(const Json& json, DynamicRule& rule) {
    if (json.is_number()) {
        rule.of = CapacityOf::amount;
        rule.capacity = json.get<std::uint64_t>();
        return;
    }
    for (const auto of : {CapacityOf::limit, CapacityOf::node, CapacityOf::device})
        if (json.get<std::string>() == name(of)) rule.of = of;
}

DynamicRule rule_of(const Json& json) {
    DynamicRule rule;
    rule.device = json.at("device").get<std::string>();
    rule.watch = resource_of(json.at("watch"));
    read_capacity(json.at("of"), rule);
    rule.above = json.at("above").get<std::uint32_t>();
    rule.below = json.at("below").get<std::uint32_t>();
    rule.limit = resource_of(json.at("limit"));
    rule.scope = json.at("scope").get<std::string>() == "process" ? Scope::process : Scope::tenant;
    rule.factor = json.at("factor").get<std::uint32_t>();
    rule.floor = cell_of(json.at("floor"));
    return rule;
}

SidecarPolicy sidecar_of(const Json& json) {
    SidecarPolicy policy;
    for (const auto& rule : json.at("dynamic")) policy.rules.push_back(rule_of(rule));
    policy.settings.metrics_port = json.at("metrics_port").get<std::uint32_t>();
    policy.settings.backstop = json.at("backstop").get<std::string>();
    return policy;
}

ChangedLimit change_of(const Json& json) {
    return {json.at("scope").get<std::string>() == "process" ? Scope::process : Scope::tenant,
            json.at("device").get<std::string>(),
            resource_of(json.at("resource")),
            cell_of(json.at("configured")),
            cell_of(json.at("limit")),
            cell_of(json.at("from")),
            json.at("reason").get<std::string>(),
            json.at("since").get<std::uint64_t>()};
}

bool in_force(const PolicySegment& policy, const ChangedLimit& change) {
    const auto now = load_limit(policy.row(change.scope, change.device), change.resource);
    return now != change.configured && (now == change.limit || now == change.from);
}

}  // namespace

Result<void> write_sidecar_policy(const std::string& directory, const Policy& policy) {
    Json rules = Json::array();
    for (const auto& rule : policy.dynamic) rules.push_back(rule_json(rule));
    return replace_json(sidecar_path(directory), Json{{"version", 1},
                                                      {"metrics_port", policy.sidecar.metrics_port},
                                                      {"backstop", policy.sidecar.backstop},
                                                      {"dynamic", std::move(rules)}});
}

Result<SidecarPolicy> read_sidecar_policy(const std::string& directory) try {
    const auto json = read_file(sidecar_path(directory));
    return json ? sidecar_of(*json) : SidecarPolicy{};
} catch (const std::exception&) {
    return Error{fmt::format("{} cannot be read; run 'rdmaquota reload' to write it", sidecar_path(directory))};
}

Result<void> write_limit_changes(const std::string& directory, const PolicySegment& policy,
                                 const std::vector<ChangedLimit>& changes) {
    const auto path = changes_path(directory);
    if (changes.empty()) {
        if (::unlink(path.c_str()) != 0 && errno != ENOENT) return cannot_write(path);
        return {};
    }
    Json list = Json::array();
    for (const auto& change : changes)
        list.push_back({{"scope", name(change.scope)},
                        {"device", change.device},
                        {"resource", info(change.resource).name},
                        {"configured", cell_json(change.configured)},
                        {"limit", cell_json(change.limit)},
                        {"from", cell_json(change.from)},
                        {"reason", change.reason},
                        {"since", change.since_s}});
    return replace_json(path, Json{{"version", 1}, {"policy", policy.id()}, {"changes", std::move(list)}});
}

std::vector<ChangedLimit> limit_changes(const std::string& directory, const PolicySegment& policy) try {
    std::vector<ChangedLimit> changes;
    const auto json = read_file(changes_path(directory));
    if (!json || json->value("policy", std::uint64_t{0}) != policy.id()) return {};
    for (const auto& entry : json->at("changes"))
        if (auto change = change_of(entry); in_force(policy, change)) changes.push_back(std::move(change));
    return changes;
} catch (const std::exception&) {
    return {};
}

std::uint64_t configured_limit(const PolicySegment& policy, const ChangedLimit& change) {
    if (change.configured != unset) return change.configured;
    const auto any = change.device == total_device ? unset
                                                   : load_limit(policy.row(change.scope, any_device), change.resource);
    return any == unset ? unlimited : any;
}

Json changes_json(const PolicySegment& policy, const std::vector<ChangedLimit>& changes) {
    Json list = Json::array();
    for (const auto& change : changes)
        list.push_back({{"scope", name(change.scope)},
                        {"device", change.device},
                        {"resource", info(change.resource).name},
                        {"configured", limit_json(configured_limit(policy, change))},
                        {"limit", limit_json(load_limit(policy.row(change.scope, change.device), change.resource))},
                        {"reason", change.reason},
                        {"since", event_time(change.since_s * 1'000'000'000, false)}});
    return list;
}

}  // namespace rdmaquota
