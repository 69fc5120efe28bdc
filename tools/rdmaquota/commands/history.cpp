#include "tools/rdmaquota/commands/history.hpp"

#include <fmt/core.h>

#include "policy/tenant.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/view/show_history.hpp"

namespace rdmaquota {
namespace {

// Also of tenants that have ended.
Json history_of(const Json& history, const std::string& tenant) try {
    Json kept = Json::array();
    for (const auto& series : history) {
        const auto name = series.value("tenant", "");
        if (name == tenant || is_below(name, tenant)) kept.push_back(series);
    }
    return kept;
} catch (const Json::exception&) {  // a sidecar of another version
    return Json::array();
}

}  // namespace

int history(const std::string& directory, const std::string& tenant, bool json) {
    auto answer = ask_sidecar(directory, Json{{"request", "history"}});
    if (!answer) return failed(answer.error());
    if (!tenant.empty()) {
        (*answer)["history"] = history_of((*answer)["history"], tenant);
        if ((*answer)["history"].empty())
            if (const auto known = find_tenant(directory, tenant); !known) return failed(known.error());
    }
    if (json)
        fmt::print("{}\n", dump(*answer));
    else
        print_history(standard_output(), *answer);
    return status_done;
}

}  // namespace rdmaquota
