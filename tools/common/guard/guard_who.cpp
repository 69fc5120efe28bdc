#include "tools/common/guard/guard_who.hpp"

#include <algorithm>
#include <cstring>

#include <sys/stat.h>

namespace rdmaquota {

u32 device_hash(const std::string& device) {
    u32 words[device_words] = {};
    std::memcpy(words, device.data(), std::min(device.size(), sizeof words - 1));
    u64 hash = GUARD_HASH_BEGIN;
    for (const auto word : words) hash = GUARD_HASH_NEXT(hash, word);
    return GUARD_HASH_END(static_cast<u32>(hash ^ hash >> 32));
}

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
