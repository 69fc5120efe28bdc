#include "tools/rdmaquotad/serve/event_relay.hpp"

#include <algorithm>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "tools/common/devices.hpp"
#include "tools/common/events/event_text.hpp"
#include "tools/rdmaquotad/loop/log.hpp"
#include "tools/rdmaquotad/serve/request.hpp"

namespace rdmaquota {
namespace {

constexpr unsigned calls_between_kept_repeats = 600;  // a minute

Text text_of(const Json& event) {
    return std::make_shared<const std::string>(dump(Json{{"version", control_version}, {"event", event}}) + "\n");
}

}  // namespace

bool EventRelay::send(Priority priority, const NodeEvent& event) {
    const auto tenant = event.fields.value("tenant", "");
    const auto json = to_json(event);
    control_.broadcast(text_of(json), [&](const Peer& peer) { return visibility_.sees_event(peer, tenant); });
    return keeper_.keep(priority, json);
}

void EventRelay::send_new() {
    const auto call = calls_++;
    const bool all = call % 10 == 0;
    if (all) std::erase_if(sources_, [&](const auto& entry) { return node_.find(entry.first) == nullptr; });
    std::vector<Source*> with_news;
    for (auto* tenant : node_.with_ledger()) {
        const auto& ledger = tenant->ledger();
        if (ledger.at_rest() && !all) continue;
        auto& source = sources_[tenant->key()];
        source.tenant = tenant;
        if (all) begin_second(source);
        const bool keeps = call % calls_between_kept_repeats == 0;
        if (keeps || (all && !ledger.at_rest())) tell_repeats(source, keeps);
        const auto head = ledger.events();
        const bool began_anew = head.denials < source.next.denials || head.repairs < source.next.repairs;
        const bool first = source.ledger == 0;
        if (std::exchange(source.ledger, ledger.number()) != ledger.number() || began_anew) {
            source.before = first ? head : EventCursor{}, source.next = {};
            source.counts.clear();
        }
        if (head != source.next) with_news.push_back(&source);
    }
    node_.schedule().pass(with_news, time_for_all, [&](Source& source) { send_new(source); });
}

void EventRelay::send_new(Source& source) {
    auto& tenant = *source.tenant;
    // An event may name a device that is new.
    if (!tenant.ledger().copy(node_.scratch(), LedgerCopy::Parts::usage)) return;
    const auto devices = devices_of(node_.scratch());
    for (const auto& [number, event] : read_events(tenant.ledger().path(), source.next)) {
        const auto json = event_json(number, event, devices, tenant.name());
        const bool repair = is_repair(event.kind);
        const bool old = number < (repair ? source.before.repairs : source.before.denials);
        if (taker_) taker_(tenant, number, event, json, old ? 0 : std::max<std::uint64_t>(event.count, 1));
        if (!repair) source.counts[number] = {event.count, event.count};
        if (old) continue;
        control_.broadcast(text_of(json), [&](const Peer& peer) { return visibility_.sees(peer, tenant); });
        keep(source, json);
    }
}

void EventRelay::keep(Source& source, const Json& json) {
    if (++source.kept > most_kept_a_second) {
        ++source.left_out;
        return;
    }
    keeper_.keep(Priority::notice, json);
}

void EventRelay::begin_second(Source& source) {
    if (source.left_out != 0)
        log(Priority::notice,
            fmt::format("tenant {}: {} events of a second were not kept", source.tenant->name(), source.left_out));
    source.kept = source.left_out = 0;
}

// A denial that a program met again is told again at once, if it is among the newest, and kept again each minute with
// its count; for as long as the ring has it.
void EventRelay::tell_repeats(Source& source, bool keeps) {
    auto& counts = source.counts;
    counts.erase(counts.begin(),
                 counts.lower_bound(source.next.denials - std::min<std::uint64_t>(source.next.denials, event_slots)));
    if (counts.empty()) return;
    const auto back = keeps ? counts.size() : std::min(counts.size(), newest);
    EventCursor known{std::prev(counts.end(), static_cast<std::ptrdiff_t>(back))->first, source.next.repairs};
    std::optional<DeviceNames> devices;
    for (const auto& [number, event] : read_events(source.tenant->ledger().path(), known)) {
        const auto found = counts.find(number);
        if (found == counts.end() || event.count <= (keeps ? found->second.kept : found->second.told)) continue;
        if (!devices) {
            if (!source.tenant->ledger().copy(node_.scratch(), LedgerCopy::Parts::usage)) return;
            devices = devices_of(node_.scratch());
        }
        tell_repeat(source, number, event, *devices, keeps);
    }
}

void EventRelay::tell_repeat(Source& source, std::uint64_t number, const Event& event, const DeviceNames& devices,
                             bool keeps) {
    auto& [told, kept] = source.counts.at(number);
    const auto json = event_json(number, event, devices, source.tenant->name());
    if (taker_ && event.count > told)
        taker_(*source.tenant, number, event, json, event.count - std::max<std::uint64_t>(told, 1));
    told = event.count;
    if (!keeps) return;
    kept = event.count;
    keep(source, json);
}

}  // namespace rdmaquota
