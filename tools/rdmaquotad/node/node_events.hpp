// Events of the daemon: changed limits, bypasses, leaks. Only the daemon writes them, while tenants can falsify those of
// the ledger. Each goes to the log, to the subscribers, and into a ring for `rdmaquota events`.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tools/common/events/event_kinds.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {

struct NodeEvent {
    std::uint64_t number;
    std::uint64_t time_ns;  // CLOCK_REALTIME
    std::string kind;       // one word: "tightened", "bypass", ...
    Json fields;            // an object with the members of this kind
    std::string text;       // one line for people; not yet safe to print
};

class NodeEvents {
public:
    static constexpr std::size_t kept = 1024;

    void emit(Priority priority, SidecarKind kind, Json fields, std::string text);
    const std::deque<NodeEvent>& all() const noexcept { return ring_; }  // oldest first
    std::uint64_t next() const noexcept { return next_; }  // number of the next one
    const std::map<std::string, std::uint64_t>& counts() const noexcept { return counts_; }  // by kind
    // Who returns true has put the event into the log.
    using Taker = std::function<bool(Priority, const NodeEvent&)>;
    void on_event(Taker taker) { on_event_ = std::move(taker); }

private:
    std::deque<NodeEvent> ring_;
    std::map<std::string, std::uint64_t> counts_;
    std::uint64_t next_ = 0;
    Taker on_event_;
};

Json to_json(const NodeEvent& event);

}  // namespace rdmaquota
