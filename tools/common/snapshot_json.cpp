#include "tools/common/snapshot_json.hpp"

#include "tools/common/json.hpp"

namespace rdmaquota {
namespace {

Json to_json(const std::vector<DeviceView>& devices, bool with_peak) {
    Json result = Json::object();
    for (const auto& device : devices)
        for (const auto& view : device.resources) {
            auto& entry = result[device.name][std::string(info(view.resource).name)];
            entry = {{"usage", view.usage}, {"limit", limit_json(view.limit)}};
            if (with_peak) entry["peak"] = view.peak ? Json(*view.peak) : Json(nullptr);
        }
    return result;
}

Json to_json(const std::vector<ActivityView>& activity) {
    // By number of enum ibv_qp_state.
    static constexpr const char* states[qp_states] = {"reset", "init", "rtr", "rts", "sqd", "sqe", "err"};
    Json result = Json::object();
    for (const auto& [device, counts] : activity) {
        auto& entry = result[device];
        entry["cq_events"] = counts.cq_events;
        for (std::size_t state = 0; state < qp_states; ++state)
            entry["qp"][states[state]] = {{"done", counts.qp_to[state]}, {"failed", counts.qp_failed[state]}};
    }
    return result;
}

}  // namespace

Json process_json(const ProcessView& process) {
    return Json{{"pid", process.pid},
                {"comm", process.comm},
                {"devices", to_json(process.devices, false)},
                {"activity", to_json(process.activity)}};
}

Json tenant_json(const TenantView& tenant) {
    Json processes = Json::array();
    for (const auto& process : tenant.processes) processes.push_back(process_json(process));
    return Json{{"name", tenant.name},
                {"mode", name(tenant.mode)},
                {"devices", to_json(tenant.devices, true)},
                {"activity", to_json(tenant.activity)},
                {"processes", std::move(processes)}};
}

}  // namespace rdmaquota
