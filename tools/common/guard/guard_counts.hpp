// What the guard in the kernel counts of tenants, as the sidecar tells it.
#pragma once

#include <string>
#include <string_view>

#include "tools/common/views/json_fwd.hpp"
#include "tools/common/views/snapshot.hpp"

namespace rdmaquota {

// An object with the member `state`: "off", "starting", "deny" or "watch" as the sidecar says; "kept" by the kernel while no
// sidecar leads it. While one does, also `refused`, `exceeded`, `killed`, `tenants`, and `problems`, a list of lines. Waits half a second at most.
Json guard_counts(const std::string& directory);

// What it does in that state, as in "the guard is on: ...".
std::string guard_words(std::string_view state);

// Adds to the tenant what the kernel counts, and how often it refused, also of what the ledger has nothing of.
// What the guard tells in another form is left out.
void add_guard_counts(const Json& guard, TenantView& tenant);

}  // namespace rdmaquota
