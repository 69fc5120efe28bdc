// A snapshot as `show --json` and the control socket tell it; see rdmaquota-show(1).
#pragma once

#include "tools/common/json.hpp"
#include "tools/common/snapshot.hpp"

namespace rdmaquota {

Json process_json(const ProcessView& process);
Json tenant_json(const TenantView& tenant);

}  // namespace rdmaquota
