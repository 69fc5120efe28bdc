// Events as lines for people and as JSON objects for programs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shm/ledger/ledger.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/views/json_fwd.hpp"

namespace rdmaquota {

// "3.2 s", "45 ms"
std::string seconds_words(std::uint64_t ns);

// For people, of an event's JSON: one of event_json, with the user's name as "user", or one of the sidecar. Trusts nothing in it,
// since any member of the tenant can have written it.
std::string event_line(const Json& event);
// Whether the event is of one process.
bool has_user(const Event& event);
// CLOCK_REALTIME as "2026-01-31 12:00:00.000", local, or "2026-01-31T12:00:00.000000000Z".
std::string event_time(std::uint64_t time_ns, bool for_people);
// "2026-01-31T12:00:00.123456789Z", as in an event's JSON, as "2026-01-31 12:00:00.123", local.
std::string local_time(const std::string& time);
// "pid 7", or "pid 1 of a container", which the node has under another number.
std::string pid_words(const Json& event);

Json event_json(std::uint64_t number, const Event& event, const DeviceNames& devices, const std::string& tenant);

}  // namespace rdmaquota
