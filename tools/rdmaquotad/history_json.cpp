#include "tools/rdmaquotad/history_json.hpp"

namespace rdmaquota {
namespace {

// Spans before the first that was seen are left out, and the present one while it is to be seen yet.
Json ring_json(const Ring& ring, std::uint64_t time_s) {
    Json usage = Json::array();
    Json peak = Json::array();
    auto spans = ring.last(time_s);
    if (spans.back().usage == Span::unseen && spans.end()[-2].usage != Span::unseen) spans.pop_back();
    for (const auto& span : spans) {
        const bool seen = span.usage != Span::unseen;
        if (!seen && usage.empty()) continue;
        usage.push_back(seen ? Json(span.usage) : Json(nullptr));
        peak.push_back(seen ? Json(span.peak) : Json(nullptr));
    }
    return Json{{"period", ring.shape().seconds}, {"usage", std::move(usage)}, {"peak", std::move(peak)}};
}

}  // namespace

Json history_json(const History& history, const Request& request, std::uint64_t time_s) {
    Json list = Json::array();
    for (const auto& [name, series] : history.all()) {
        if (!request.device.empty() && request.device != name.device) continue;
        if (!request.resource.empty() && request.resource != info(name.resource).name) continue;
        Json entry{{"tenant", name.tenant}, {"device", name.device}, {"resource", info(name.resource).name}};
        for (const auto& ring : series.rings) entry[ring.shape().name] = ring_json(ring, time_s);
        list.push_back(std::move(entry));
    }
    return Json{{"version", control_version}, {"time", time_s}, {"history", std::move(list)}};
}

}  // namespace rdmaquota
