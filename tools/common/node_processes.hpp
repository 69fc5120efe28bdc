// What a tenant's processes are on this node. A process in a container notes the pid that it has there, mostly 1.
#pragma once

#include <string>

#include "tools/common/snapshot.hpp"

namespace rdmaquota {

// Gives each process of the view its pid in this pid namespace, 0 where that cannot be told, and its cgroup. What a process
// says of itself holds when the process of that pid began at that moment. Else the one that has the slot is looked for: by
// its mappings, which are the kernel's word, or where these may not be read, by its pid there and its beginning, if only
// one process fits. `ledger` is the tenant's ledger directory. Sorts the processes by pid again.
void name_by_node(TenantView& tenant, const std::string& ledger, const std::string& proc = "/proc");

}  // namespace rdmaquota
