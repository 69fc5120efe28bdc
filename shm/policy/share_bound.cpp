#include "shm/policy/share_bound.hpp"

#include <algorithm>
#include <vector>

#include <dirent.h>

#include "policy/tenant.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota {
namespace {

struct Above {
    ShareBound bound;
    std::uint64_t shares = 0;  // of those below it, together

    std::uint64_t left() const noexcept { return bound.limit - std::min(bound.limit, shares); }
};

// The nearest first. A limit that is a share itself bounds nothing more than what is above it does.
std::vector<Above> all_above(const std::string& directory, std::string_view tenant, std::string_view row,
                             Resource resource) {
    std::vector<Above> all;
    while (tenant != node_tenant) {
        tenant = parent_of(tenant);
        const auto limits = LimitsSegment::open(limits_path(here_path(directory, tenant)), LimitsSegment::Parts::all);
        if (!limits || limits->reason(Scope::tenant, row, resource) == Reason::grant) continue;
        const auto limit = limits->limit(Scope::tenant, row, resource);
        if (limit != unlimited) all.push_back({{std::string(tenant), limit}});
    }
    return all;
}

std::uint64_t share_of(const std::string& directory, std::string_view tenant, std::string_view row, Resource resource) {
    const auto limits = LimitsSegment::open(limits_path(here_path(directory, tenant)), LimitsSegment::Parts::all);
    if (!limits) return 0;
    auto share = limits->granted(row, resource);
    if (share == unset && row != total_device) share = limits->granted(any_device, resource);
    return share == unset ? 0 : std::min(share, max_amount);
}

void add_shares(const std::string& directory, std::vector<Above>& all, std::string_view row, Resource resource) {
    DIR* tenants = opendir(tenants_directory(directory).c_str());
    if (tenants == nullptr) return;
    while (const dirent* entry = readdir(tenants)) {
        std::string key = entry->d_name;
        if (key.starts_with('.')) continue;
        std::replace(key.begin(), key.end(), '+', '/');
        const auto share = is_below(key, all.back().bound.tenant) ? share_of(directory, key, row, resource) : 0;
        for (auto& above : all)
            if (is_below(key, above.bound.tenant)) above.shares = std::min(above.shares + share, max_amount);
    }
    closedir(tenants);
}

}  // namespace

std::optional<ShareBound> share_bound(const std::string& directory, const std::string& tenant, std::string_view row,
                                      Resource resource) {
    auto all = all_above(directory, tenant, row, resource);
    if (all.empty()) return std::nullopt;
    if (all.size() > 1) add_shares(directory, all, row, resource);
    const auto tightest =
        std::min_element(all.begin(), all.end(), [](const Above& a, const Above& b) { return a.left() < b.left(); });
    return std::move(tightest->bound);
}

}  // namespace rdmaquota
