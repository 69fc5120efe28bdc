#include "tools/rdmaquotad/bypass/process_tenants.hpp"

#include <utility>

namespace rdmaquota {
namespace {

constexpr auto trusted_for = std::chrono::seconds(5);
constexpr std::size_t most_known = 4096;

}  // namespace

const std::string& ProcessTenants::of(std::uint32_t pid) {
    const auto now = Clock::now();
    const auto policy = node_.policy() != nullptr ? node_.policy()->id() : 0;
    if (std::exchange(policy_, policy) != policy || known_.size() > most_known) known_.clear();
    auto& known = known_[pid];
    if (known.tenant.empty() || now - known.read > trusted_for) known = {node_.tenant_of(pid), now};
    return known.tenant;
}

}  // namespace rdmaquota
