#include "tools/common/views/findings.hpp"

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "tools/common/control_client.hpp"

namespace rdmaquota {
namespace {

BypassView view_of(const Json& json) {
    BypassView view{json.value("pid", 0U), json.value("comm", ""), json.value("tenant", ""),
                    json.value("device", ""), {}};
    for (const auto& row : resource_table) {
        const auto found = json["resources"].find(row.name);
        if (found == json["resources"].end()) continue;
        const auto kernel = found->value("kernel", std::uint64_t{0}), ledger = found->value("ledger", std::uint64_t{0});
        if (kernel > ledger) view.excess.push_back({row.id, kernel - ledger});
    }
    return view;
}

}  // namespace

Findings findings(const std::string& directory) {
    const auto answer = ask_sidecar(directory, Json{{"request", "status"}}, std::chrono::milliseconds(500));
    if (!answer) return Findings{};
    return {answer->value("kernel", Json::object()).value("bypasses", Json()), answer->value("capacity", Json())};
}

std::vector<BypassView> bypass_views(const Json& bypasses) try {
    std::vector<BypassView> views;
    for (const auto& bypass : bypasses) views.push_back(view_of(bypass));
    return views;
} catch (const Json::exception&) {  // a sidecar of another version
    return {};
}

std::vector<std::string> capacity_lines(const Json& capacity) try {
    std::vector<std::string> lines;
    for (const auto& one : capacity) {
        const auto told = one.value("told", std::uint64_t{0});
        lines.push_back(fmt::format("{} refused a {} with {} in use{}", printable(one.value("device", "")),
                                    printable(one.value("resource", "")), one.value("found", std::uint64_t{0}),
                                    told == 0 ? "" : fmt::format(", though it tells of {}", told)));
    }
    return lines;
} catch (const Json::exception&) {
    return {};
}

}  // namespace rdmaquota
