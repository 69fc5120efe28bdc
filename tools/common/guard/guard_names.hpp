// Which row of the guard is whose, kept in the kernel beside the rows, so that whoever leads the guard next finds them.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/scope.hpp"
#include "tools/common/guard/kernel_counts.h"

namespace rdmaquota {

guard_name guard_name_of(std::string_view tenant, std::string_view device, Scope scope);
std::string_view tenant_of(const guard_name& name);
std::string_view device_of(const guard_name& name);

class GuardNames {
public:
    // The descriptor of the map `names`, which is not owned; -1: there is none, and nothing is kept.
    explicit GuardNames(int map = -1) noexcept : map_(map) {}

    bool put(const guard_name& name, std::uint32_t row) const;  // false where the kernel has no room
    void erase(const guard_name& name) const;
    std::vector<std::pair<guard_name, std::uint32_t>> all() const;

private:
    int map_;
};

}  // namespace rdmaquota
