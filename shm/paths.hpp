// The files of a quota directory. Whoever makes them is root, so that nobody can prepare another's.
//
//   DIR/policy-V                       the node's compiled policy: tenants, matches (shm/policy/node_policy.hpp)
//   DIR/policy-V.lock                  locked while policy or tenants are changed (shm/policy/policy_lock.hpp)
//   DIR/tenants/NAME/here              a tenant, with '+' for '/' in its name
//       here/limits-V                  its limits (shm/policy/limits_segment.hpp); .lock, .tmp, .old beside it
//       here/ledgers/V/ledger          its ledger
//       here/ledgers/V/owners/NN       the ledger's lock files, 64 owners each
//       here/control.sock              a link to the sidecar's
//
// V is layout_version. What a container gets mounted as its DIR is a tenant's `here`: a directory with limits at its top
// is one tenant's own. `rdmaquota run` makes one, too.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "shm/layout_version.hpp"
#include "shm/ledger/layout.hpp"

namespace rdmaquota {

inline constexpr const char* system_directory = RDMAQUOTA_RUNTIME_DIR;
// The node's quota directory again, for programs whose mounts hide the first place or show it read-only: who can use
// RDMA sees /dev/infiniband (tools/common/tenants/ledger_mount.hpp).
inline constexpr const char* second_directory = "/dev/infiniband/rdmaquota";

inline bool is_node_directory(std::string_view directory) noexcept {
    return directory == system_directory || directory == second_directory;
}

inline std::string node_policy_path(const std::string& directory) {
    return fmt::format("{}/policy-{}", directory, layout_version);
}

inline std::string tenants_directory(const std::string& directory) { return directory + "/tenants"; }

// `tenant` is a name or a key, such as "user/#1000".
inline std::string tenant_directory(const std::string& directory, std::string_view tenant) {
    std::string name(tenant);
    std::replace(name.begin(), name.end(), '/', '+');
    return fmt::format("{}/tenants/{}", directory, name);
}

inline std::string here_path(const std::string& directory, std::string_view tenant = default_tenant) {
    return tenant_directory(directory, tenant) + "/here";
}

// The following are of a `here`.
inline std::string limits_path(const std::string& here) { return fmt::format("{}/limits-{}", here, layout_version); }

inline std::string ledger_path(const std::string& here) { return fmt::format("{}/ledgers/{}", here, layout_version); }

// And these of a ledger.
inline std::string data_path(const std::string& ledger) { return ledger + "/ledger"; }

inline std::string lock_directory(const std::string& ledger) { return ledger + "/owners"; }

// Called in the proof of a denial, which must not need the kilobyte of stack that fmt takes.
inline std::string lock_path(const std::string& ledger, std::uint32_t slot) {
    const auto number = slot / owners_per_lock_file;
    static_assert(owner_slots / owners_per_lock_file <= 100);
    return lock_directory(ledger) + '/' + static_cast<char>('0' + number / 10) + static_cast<char>('0' + number % 10);
}

}  // namespace rdmaquota
