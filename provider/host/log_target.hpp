// Where this process logs: where the node's policy says, or that of RDMAQUOTA_DIR where the node has none, unless the
// environment says something else. What a mapped policy says is kept, so that a denial opens no policy to find out.
#pragma once

#include <string>
#include <string_view>

#include "policy/policy.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota::provider {

// Logs as the policy of that quota directory says from now on. Call it for each policy that is mapped. Thread-safe;
// throws only std::bad_alloc.
void follow_log_settings(const std::string& directory, const LimitsSegment& policy);

// Logs one line; see provider/host/log.hpp. Before any policy was followed the first message reads one. Keeps errno.
void say(LogLevel level, std::string_view message) noexcept;

// Whether a line of this level would be written, by the policy that was followed last. False before any was.
bool says(LogLevel level) noexcept;

}  // namespace rdmaquota::provider
