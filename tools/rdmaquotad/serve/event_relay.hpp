// Sends events to subscribers of the control socket: those of the sidecar, and those that programs write into the
// ledgers. Each subscriber gets those of the tenants that it sees.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tools/rdmaquotad/core/node.hpp"
#include "tools/rdmaquotad/core/node_events.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"
#include "tools/rdmaquotad/serve/visibility.hpp"

namespace rdmaquota {

class EventRelay {
public:
    // Events of ledgers are read for so long in each call; the rest follows in the next.
    static constexpr std::chrono::milliseconds time_for_all{20};

    EventRelay(Node& node, Visibility& visibility, ControlSocket& control)
        : node_(node), visibility_(visibility), control_(control) {}

    void send(const NodeEvent& event);
    // What came into the ledgers since the last call. Those at rest are looked at in every tenth call.
    void send_new();

private:
    struct Source {
        std::uint32_t ledger = 0;  // LedgerWatch::number
        EventCursor next;
        LookSchedule::Turn turn;
        Tenant* tenant = nullptr;
    };
    void send_new(Source& source);

    Node& node_;
    Visibility& visibility_;
    ControlSocket& control_;
    std::map<std::string, Source> sources_;  // by the tenant's key
    unsigned calls_ = 0;
};

}  // namespace rdmaquota
