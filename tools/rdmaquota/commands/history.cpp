#include "tools/rdmaquota/commands/history.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tools/common/control_client.hpp"
#include "tools/common/json.hpp"
#include "tools/common/read_tenants.hpp"
#include "tools/common/terminal.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/view/show_history.hpp"

namespace rdmaquota {
namespace {

// Leaves in `answer` what is of these.
void keep_history_of(const std::vector<TenantReading>& tenants, Json& answer) {
    Json kept = Json::array();
    for (auto& series : answer["history"])
        if (std::any_of(tenants.begin(), tenants.end(),
                        [&](const TenantReading& tenant) { return tenant.view.name == series.value("tenant", ""); }))
            kept.push_back(std::move(series));
    answer["history"] = std::move(kept);
}

}  // namespace

int history(const std::string& directory, const std::string& tenant, bool json) {
    auto answer = ask_sidecar(directory, Json{{"request", "history"}});
    if (!answer) return failed(answer.error());
    if (!tenant.empty()) {
        const auto tenants = read_tenants(directory, tenant);
        if (!tenants) return failed(tenants.error());
        keep_history_of(*tenants, *answer);
    }
    if (json)
        fmt::print("{}\n", dump(*answer));
    else
        print_history(standard_output(), *answer);
    return status_done;
}

}  // namespace rdmaquota
