// All tenants of a quota directory that have limits, but for templates, mapped as long as this lives.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "shm/policy/limits_segment.hpp"
#include "tools/common/shares/share_tree.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {

class LimitedTenants {
public:
    explicit LimitedTenants(const std::string& directory);
    LimitedTenants(const LimitedTenants&) = delete;

    const std::vector<ShareMember>& list() const noexcept { return list_; }

private:
    std::deque<TenantPlace> places_;
    std::deque<std::string> names_;
    std::deque<LimitsSegment> segments_;
    std::vector<ShareMember> list_;
};

}  // namespace rdmaquota
