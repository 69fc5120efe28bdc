#include "tools/common/limit_changes.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include <fmt/core.h>

#include "tools/common/event_text.hpp"
#include "tools/common/file_text.hpp"
#include "tools/common/json.hpp"

namespace rdmaquota {
namespace {

std::string changes_path(const std::string& directory) { return directory + "/changed.json"; }

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
    const Json json{{"version", 1}, {"policy", policy.id()}, {"changes", std::move(list)}};
    return replace_file(path, dump(json) + "\n");
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
