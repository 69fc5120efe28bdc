// Which events are asked for.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/views/json_fwd.hpp"

namespace rdmaquota {

// What is empty admits every event. An event that does not say what is asked for is not admitted.
struct EventFilter {
    std::string since;                                        // UTC, as in an event's "time"
    std::vector<std::string> kinds, tenants, users, devices;  // a port belongs to its device

    bool admits(const Json& event) const;
};

// "90s", "5min", "1h", "2d" (before `now_s`), "12:30" (today), "2026-01-31" or "2026-01-31 12:30[:05]", local. Returns
// it as in an event's "time".
Result<std::string> parse_since(std::string_view text, std::int64_t now_s);

// An error names a kind that there is not.
Result<void> check_kinds(const std::vector<std::string>& kinds);

}  // namespace rdmaquota
