// What the daemon itself did or found: changed limits, bypasses, leaks. Unlike the ledger's events,
// which every tenant can falsify, only the daemon writes these. Each goes to the log, to those who
// subscribed, and into a ring that `rdmaquota events` and new subscribers read.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "tools/common/json.hpp"
#include "tools/rdmaquotad/core/log.hpp"

namespace rdmaquota {

struct NodeEvent {
    std::uint64_t number;
    std::uint64_t time_ns;  // CLOCK_REALTIME
    std::string kind;       // one word: "tightened", "bypass", ...
    Json fields;            // what the kind has besides: an object
    std::string text;       // one line for people; not yet safe to print
};

class NodeEvents {
public:
    static constexpr std::size_t kept = 1024;

    void emit(Priority priority, std::string_view kind, Json fields, std::string text);
    const std::deque<NodeEvent>& all() const noexcept { return ring_; }  // oldest first
    std::uint64_t next() const noexcept { return next_; }  // number of the next one
    const std::map<std::string, std::uint64_t>& counts() const noexcept { return counts_; }  // by kind
    void on_event(std::function<void(const NodeEvent&)> told) { told_ = std::move(told); }

private:
    std::deque<NodeEvent> ring_;
    std::map<std::string, std::uint64_t> counts_;
    std::uint64_t next_ = 0;
    std::function<void(const NodeEvent&)> told_;
};

Json to_json(const NodeEvent& event);

}  // namespace rdmaquota
