// A node's directory in which policies are put in force, as `rdmaquota reload` does.
#pragma once

#include <catch2/catch.hpp>

#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "shm/ledger/access.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "test/unit/temporary_directory.hpp"
#include "tools/common/limits/reload.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {

struct TenantNode {
    TemporaryDirectory directory;
    const std::string& path = directory.path();

    void publish(const Policy& policy) const {
        const auto lock = PolicyLock::take(node_policy_path(path));
        REQUIRE(lock);
        REQUIRE(publish_policy(*lock, path, policy));
    }
    std::vector<std::string> keys() const {
        std::vector<std::string> names;
        for (const auto& place : tenant_places(path)) names.push_back(place.key);
        return names;
    }
    struct stat rights(std::string_view tenant) const {
        struct stat status {};
        REQUIRE(::stat(data_path(ledger_path(here_path(path, tenant))).c_str(), &status) == 0);
        return status;
    }
    bool admits(std::string_view tenant, uid_t user) const {
        return rdmaquota::admits(*rights_of(data_path(ledger_path(here_path(path, tenant)))), user, {});
    }
    Ledger open(std::string_view tenant) const { return std::move(*Ledger::open(ledger_path(here_path(path, tenant)))); }
};

inline void limit(TenantPolicy& tenant, std::uint64_t qps, const std::string& device = "*") {
    row_for(tenant.limits[index(Scope::tenant)], device)[index(Resource::qp)] = qps;
}

inline Match by_user(const std::string& user) { return {user, {}, {}, {}, {}}; }
inline Match by_cgroup(std::vector<std::string> members) { return {{}, {}, "/jobs", {}, std::move(members)}; }

}  // namespace rdmaquota
