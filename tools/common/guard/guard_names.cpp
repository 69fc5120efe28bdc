#include "tools/common/guard/guard_names.hpp"

#include <cstring>

#include "tools/common/guard/bpf_map.hpp"
#include "policy/fixed_text.hpp"

namespace rdmaquota {

guard_name guard_name_of(std::string_view tenant, std::string_view device, Scope scope) {
    guard_name name{};
    tenant.copy(name.tenant, sizeof name.tenant - 1);
    device.copy(name.device, sizeof name.device - 1);
    name.scope = static_cast<std::uint32_t>(scope);
    return name;
}

std::string_view tenant_of(const guard_name& name) { return fixed_text(name.tenant); }
std::string_view device_of(const guard_name& name) { return fixed_text(name.device); }

bool GuardNames::put(const guard_name& name, std::uint32_t row) const { return map_ < 0 || bpf::put(map_, &name, &row); }

void GuardNames::erase(const guard_name& name) const {
    if (map_ >= 0) bpf::erase(map_, &name);
}

std::vector<std::pair<guard_name, std::uint32_t>> GuardNames::all() const {
    std::vector<std::pair<guard_name, std::uint32_t>> found;
    guard_name name;
    if (map_ < 0) return found;
    for (const guard_name* last = nullptr; bpf::next(map_, last, &name); last = &name) {
        std::uint32_t row = 0;
        if (bpf::get(map_, &name, &row) && row >= process_rows && row < guard_rows) found.emplace_back(name, row);
    }
    return found;
}

}  // namespace rdmaquota
