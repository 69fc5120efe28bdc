// All tenants of a quota directory as of one moment, for commands: limits and ledgers combined.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/result.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/process/node_processes.hpp"
#include "tools/common/views/snapshot.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {

struct TenantReading {
    TenantPlace place;
    TenantView view;
    std::vector<LimitsWriter::Held> held;
};

// The named tenant and those below it, or all for the empty name: in the order of tenant_places, a tenant, but for the
// node, before those below it. Reaps the dead. Leaves out templates, and tenants whose ledger this user may not read; an
// error when nothing is left.
Result<std::vector<TenantReading>> read_tenants(const std::string& directory, std::string_view name = {});

// One tenant alone.
Result<TenantReading> read_place(const TenantPlace& place, NodeProcesses& processes);

// The usage in a list of devices; 0 for what is not in it.
std::uint64_t usage_of(const std::vector<DeviceView>& devices, std::string_view device, Resource resource);

// The devices of this machine, and those that the tenant uses or its limits name; "total" among them where it is limited.
std::vector<std::string> devices_of(const TenantView& tenant, const LimitsSegment& limits);

// Whether something on the device is in use.
bool is_used(const DeviceView& device);

}  // namespace rdmaquota
