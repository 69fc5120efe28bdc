#include "tools/common/views/snapshot_json.hpp"

#include "tools/common/events/event_text.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

Json to_json(const std::vector<DeviceView>& devices, bool with_peak) {
    Json result = Json::object();
    for (const auto& device : devices)
        for (const auto& view : device.resources) {
            auto& entry = result[device.name][std::string(info(view.resource).name)];
            entry = {{"usage", view.usage}, {"limit", limit_json(view.limit)}};
            if (!with_peak) continue;
            entry["peak"] = view.peak ? Json(*view.peak) : Json(nullptr);
            entry["configured"] = limit_json(view.configured);
            add_percent(entry, view.written);
            entry["guarantee"] = view.guarantee;
            entry["soft"] = limit_json(view.soft);
            entry["room"] = limit_json(view.room());
            if (view.above_soft()) entry["grace_left_s"] = view.grace_left_s();
            if (view.debt() != 0) entry["debt"] = view.debt();
            if (view.earmarked != 0) entry["earmarked"] = view.earmarked;
            if (view.kernel) {
                entry["kernel"] = *view.kernel;
                entry["refused"] = view.refused;
            }
            entry["reason"] = view.reason == Reason::configured ? Json(nullptr) : Json(name(view.reason));
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

Json to_json(const std::vector<RateView>& rates) {
    Json list = Json::array();
    for (const auto& view : rates)
        list.push_back({{"device", view.device},
                        {"rate", info(view.rate).name},
                        {"limit", limit_json(view.limit)},
                        {"configured", limit_json(view.configured)},
                        {"burst", limit_json(view.burst)},
                        {"delayed_calls", view.delays.calls},
                        {"delayed_ms", view.delays.ns / 1'000'000},
                        {"reason", view.reason == Reason::configured ? Json(nullptr) : Json(name(view.reason))}});
    return list;
}

}  // namespace

Json process_json(const ProcessView& process) {
    Json json{{"pid", process.pid == 0 ? Json(nullptr) : Json(process.pid)},
              {"uid", process.uid},
              {"comm", process.comm},
              {"cgroup", process.cgroup.empty() ? Json(nullptr) : Json(process.cgroup)},
              {"devices", to_json(process.devices, false)},
              {"activity", to_json(process.activity)}};
    if (process.inner_pid != 0) json["container_pid"] = process.inner_pid;
    return json;
}

Json tenant_json(const TenantView& tenant) {
    Json processes = Json::array();
    for (const auto& process : tenant.processes) processes.push_back(process_json(process));
    return Json{{"name", tenant.name},
                {"parent", tenant.name == node_tenant ? Json(nullptr) : Json(parent_of(tenant.name))},
                {"mode", name(tenant.mode)},
                {"weight", tenant.weight},
                {"devices", to_json(tenant.devices, true)},
                {"activity", to_json(tenant.activity)},
                {"rates", to_json(tenant.rates)},
                {"processes", std::move(processes)}};
}

Json held_json(const std::vector<LimitsWriter::Held>& limits) {
    Json list = Json::array();
    for (const auto& held : limits)
        list.push_back({{"scope", name(held.scope)},
                        {"device", held.device},
                        {"resource", info(held.resource).name},
                        {"configured", limit_json(held.configured)},
                        {"limit", limit_json(held.limit)},
                        {"kind", name(held.reason)},
                        {"reason", held.why},
                        {"since", event_time(held.since_s * 1'000'000'000, false)}});
    return list;
}

}  // namespace rdmaquota
