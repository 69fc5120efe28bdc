#include "tools/common/guard/guard_who.hpp"

#include <sys/stat.h>

namespace rdmaquota {

// The kernel's number of a cgroup is that of its directory.
u64 cgroup_id(const std::string& path) {
    struct stat status {};
    return stat(("/sys/fs/cgroup" + path).c_str(), &status) == 0 ? status.st_ino : 0;
}

std::vector<std::pair<u64, std::string>> bound_cgroups(const Policy& policy) {
    std::vector<std::pair<u64, std::string>> bound;
    for (const auto& tenant : policy.tenants)
        for (const auto& match : tenant.matches)
            if (const auto cgroup = match.bound ? cgroup_id(match.cgroup) : 0) bound.emplace_back(cgroup, tenant.name);
    return bound;
}

}  // namespace rdmaquota
