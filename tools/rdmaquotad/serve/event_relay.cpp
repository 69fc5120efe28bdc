#include "tools/rdmaquotad/serve/event_relay.hpp"

#include <memory>
#include <vector>

#include "tools/common/event_text.hpp"
#include "tools/rdmaquotad/serve/request.hpp"

namespace rdmaquota {
namespace {

Text text_of(const Json& event) {
    return std::make_shared<const std::string>(dump(Json{{"version", control_version}, {"event", event}}) + "\n");
}

}  // namespace

void EventRelay::send(const NodeEvent& event) {
    const auto tenant = event.fields.value("tenant", "");
    control_.broadcast(text_of(to_json(event)), [&](const Peer& peer) {
        return visibility_.sees_event(peer, tenant);
    });
}

// From now on, of ledgers that are new here. While nobody listens, events are passed over.
void EventRelay::send_new() {
    const bool all = calls_++ % 10 == 0;
    if (all) std::erase_if(sources_, [&](const auto& entry) { return node_.find(entry.first) == nullptr; });
    const bool heard = control_.subscribers() != 0;
    std::vector<Source*> with_news;
    for (auto* tenant : node_.with_ledger()) {
        const auto& ledger = tenant->ledger();
        if (ledger.at_rest() && !all) continue;
        auto& source = sources_[tenant->key()];
        source.tenant = tenant;
        const auto head = ledger.events();
        const bool began_anew = head.denials < source.next.denials || head.repairs < source.next.repairs;
        const bool first = source.ledger == 0;
        if (std::exchange(source.ledger, ledger.number()) != ledger.number() || began_anew)
            source.next = first ? head : EventCursor{};
        if (head == source.next) continue;
        if (heard) with_news.push_back(&source);
        else source.next = head;
    }
    node_.schedule().pass(with_news, time_for_all, [&](Source& source) { send_new(source); });
}

void EventRelay::send_new(Source& source) {
    auto& tenant = *source.tenant;
    // An event may name a device that is new.
    if (!tenant.ledger().copy(node_.scratch(), LedgerCopy::Parts::usage)) return;
    const auto devices = node_.scratch().devices();
    for (const auto& [number, event] : read_events(tenant.ledger().path(), source.next))
        control_.broadcast(text_of(event_json(number, event, devices, tenant.name())),
                           [&](const Peer& peer) { return visibility_.sees(peer, tenant); });
}

}  // namespace rdmaquota
