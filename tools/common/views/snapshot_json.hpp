// A snapshot in the form of `show --json` and of the control socket; see rdmaquota-show(1).
#pragma once

#include "tools/common/views/json_fwd.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/views/snapshot.hpp"

namespace rdmaquota {

Json process_json(const ProcessView& process);
Json tenant_json(const TenantView& tenant);

// Limits that are at present not the configured ones.
Json held_json(const std::vector<LimitsWriter::Held>& limits);

}  // namespace rdmaquota
