// Events that outlive the rings: the sidecar writes them, `rdmaquota events --since` reads them.
//
// They are kept by systemd-journald where that runs, for the node's own quota directory, else as lines of JSON in a
// file of the quota directory's: /var/log/rdmaquota/events.json for the node's, DIR/events.json for another. A file
// that has grown to its bound becomes events.json.1, and the one before goes.
#pragma once

#include <string>
#include <vector>

#include "tools/common/views/json_fwd.hpp"

namespace rdmaquota {

// In all entries of ours in systemd-journald.
inline constexpr const char* event_message_id = "4f1c8d0a5b7e4c6f9a3d2e61b08c57f4";

bool journald_keeps_events(const std::string& directory);
std::string event_file(const std::string& directory);

// As event_json and the sidecar have them, from `since` on (UTC, as an event's "time"), oldest first; what this user
// may not read is left out. An event that was repeated may be there several times, each with its count by then.
std::vector<Json> read_event_journal(const std::string& directory, const std::string& since);

}  // namespace rdmaquota
