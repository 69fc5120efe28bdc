#include "tools/rdmaquotad/node/node_events.hpp"

#include <ctime>

#include <fmt/core.h>

#include "tools/common/events/event_text.hpp"
#include "tools/common/tenants/pod_names.hpp"

namespace rdmaquota {

void NodeEvents::emit(Priority priority, SidecarKind kind, Json fields, std::string text) {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    const auto time_ns =
        static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
    if (auto pod = pod_of_tenant(fields.value("tenant", "")); !pod.empty()) fields["pod"] = std::move(pod);
    ++counts_[std::string(std::string_view(kind))];
    ring_.push_back({next_++, time_ns, std::string(std::string_view(kind)), std::move(fields), std::move(text)});
    if (ring_.size() > kept) ring_.pop_front();
    const auto& event = ring_.back();
    if (!on_event_ || !on_event_(priority, event)) log(priority, fmt::format("{}: {}", event.kind, event.text));
}

Json to_json(const NodeEvent& event) {
    Json json{{"number", event.number},
              {"source", "sidecar"},
              {"time", event_time(event.time_ns, false)},
              {"kind", event.kind}};
    json.update(event.fields);
    json["text"] = event.text;
    return json;
}

}  // namespace rdmaquota
