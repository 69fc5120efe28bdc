#include "tools/rdmaquotad/bypass/churn.hpp"

namespace rdmaquota {
namespace {

// A file that a process closed is counted anew where its pid comes again.
void add_growth(ResourceCounts& sums, ResourceCounts& known, const ResourceCounts& now) {
    for (std::size_t r = 0; r < resource_count; ++r) {
        if (now[r] > known[r]) sums[r] += now[r] - known[r];
        known[r] = now[r];
    }
}

}  // namespace

void Churn::add(const KernelUse& use, const TenantOf& tenant_of) {
    auto& maker = makers_[maker_of(use)];
    maker.unseen = 0;
    if (maker.tenant.empty()) maker.tenant = tenant_of(use);
    Counts before;
    auto& sums = began_ ? all_[{maker.tenant, use.device}] : before;
    add_growth(sums.created, maker.counts.created, use.created);
    add_growth(sums.destroyed, maker.counts.destroyed, use.destroyed);
}

void Churn::add(const std::vector<KernelUse>& uses, const std::vector<KernelUse>& ended, const TenantOf& tenant_of) {
    const TenantOf gone = [](const KernelUse&) { return std::string(); };
    for (auto& [maker, known] : makers_) ++known.unseen;
    for (const auto& use : ended) add(use, gone);
    for (const auto& use : ended) makers_.erase(maker_of(use));
    for (const auto& use : uses) add(use, tenant_of);
    // One that closes its file while the tables are read is in neither of them for that look.
    std::erase_if(makers_, [](const auto& entry) { return entry.second.unseen > 1; });
    began_ = true;
}

void Churn::keep(const std::function<bool(const std::string&)>& is_there) {
    std::erase_if(all_, [&](const auto& entry) { return !is_there(entry.first.first); });
}

}  // namespace rdmaquota
