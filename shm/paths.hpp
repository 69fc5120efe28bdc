// The files of a quota directory.
//
//   DIR/policy              the compiled policy
//   DIR/policy.lock         locked while the policy is changed (shm/policy/policy_lock.hpp)
//   DIR/policy.tmp, .old    the next and the previous policy while one replaces the other
//   DIR/TENANT/ledger       the tenant's ledger
//   DIR/TENANT/owners/NN    its lock files, 64 owners each
#pragma once

#include <string>
#include <string_view>

#include <fmt/core.h>

#include "shm/ledger/layout.hpp"

namespace rdmaquota {

inline constexpr const char* system_directory = RDMAQUOTA_RUNTIME_DIR;

inline std::string policy_path(const std::string& directory) { return directory + "/policy"; }

inline std::string ledger_path(const std::string& directory, std::string_view tenant = default_tenant) {
    return fmt::format("{}/{}", directory, tenant);
}

inline std::string data_path(const std::string& ledger) { return ledger + "/ledger"; }

inline std::string lock_directory(const std::string& ledger) { return ledger + "/owners"; }

inline std::string lock_path(const std::string& ledger, std::uint32_t slot) {
    return fmt::format("{}/owners/{:02}", ledger, slot / owners_per_lock_file);
}

}  // namespace rdmaquota
