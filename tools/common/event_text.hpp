// Events as lines for people and as JSON objects for programs.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "shm/ledger/ledger.hpp"
#include "tools/common/json_fwd.hpp"

namespace rdmaquota {

using DeviceNames = std::vector<std::pair<std::uint32_t, std::string>>;

// Trusts nothing in the event, which any member of the tenant can have written.
// `user` is the name of whoever ran the process, "-" where there was none.
std::string event_line(const Event& event, const DeviceNames& devices, const std::string& tenant, const std::string& user);
// Whether the event is of one process.
bool has_user(const Event& event);
// CLOCK_REALTIME as "2026-01-31 12:00:00.000", local, or "2026-01-31T12:00:00.000000000Z".
std::string event_time(std::uint64_t time_ns, bool for_people);
// `event` is one of the sidecar, as the control socket sends it.
std::string sidecar_line(const Json& event);
Json event_json(std::uint64_t number, const Event& event, const DeviceNames& devices, const std::string& tenant);

}  // namespace rdmaquota
