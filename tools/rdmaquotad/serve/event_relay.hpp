// Sends events to subscribers of the control socket: those of the sidecar, and those that programs write into the
// ledgers. Each subscriber gets those of the tenants that it sees. All are kept in the journal of events as well, but
// for those of a ledger that come faster than anybody could read.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "tools/common/events/event_text.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"
#include "tools/rdmaquotad/serve/event_keeper.hpp"
#include "tools/rdmaquotad/serve/visibility.hpp"

namespace rdmaquota {

class EventRelay {
public:
    // Events of ledgers are read for so long in each call; the rest follows in the next.
    static constexpr std::chrono::milliseconds time_for_all{20};

    static constexpr unsigned most_kept_a_second = 20;  // of a tenant
    static constexpr std::size_t newest = 64;           // denials of a tenant whose counts are compared each second

    EventRelay(Node& node, Visibility& visibility, ControlSocket& control)
        : node_(node), visibility_(visibility), control_(control), keeper_(node.directory()) {}

    // Is told of each event of a ledger, also of those from before this sidecar, and again when its count grew. `more`:
    // how many were not told of yet; 0: from before.
    using Taker =
        std::function<void(const Tenant&, std::uint64_t number, const Event&, const Json&, std::uint64_t more)>;
    void on_ledger_event(Taker taker) { taker_ = std::move(taker); }

    // True when the event is in the log by that.
    bool send(Priority priority, const NodeEvent& event);
    // What came into the ledgers since the last call. Those at rest are looked at in every tenth call.
    void send_new();

private:
    struct Source {
        std::uint32_t ledger = 0;  // LedgerWatch::number
        EventCursor next;
        EventCursor before;  // what was there when the sidecar found it
        LookSchedule::Turn turn;
        Tenant* tenant = nullptr;
        struct Count {
            std::uint64_t told, kept;
        };
        std::map<std::uint64_t, Count> counts;  // of denials that may be repeated
        unsigned kept = 0, left_out = 0;        // in this second
    };
    void send_new(Source& source);
    void keep(Source& source, const Json& json);
    void tell_repeats(Source& source, bool keeps);
    void tell_repeat(Source& source, std::uint64_t number, const Event& event, const DeviceNames& devices, bool keeps);
    static void begin_second(Source& source);

    Node& node_;
    Visibility& visibility_;
    ControlSocket& control_;
    std::map<std::string, Source> sources_;  // by the tenant's key
    unsigned calls_ = 0;
    EventKeeper keeper_;
    Taker taker_;
};

}  // namespace rdmaquota
