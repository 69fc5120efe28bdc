#include "tools/rdmaquotad/serve/tenant_views.hpp"

#include <algorithm>

#include "policy/tenant.hpp"

namespace rdmaquota {
namespace {

std::size_t figures_of_processes(const TenantView& view) {
    std::size_t count = 0;
    for (const auto& process : view.processes) {
        count += 1 + 16 * process.activity.size();
        for (const auto& device : process.devices) count += device.resources.size();
    }
    return count;
}

TenantView without_processes(const Figures& figures) {
    TenantView view{};
    for (const auto& on : figures.devices) {
        auto& device = view.devices.emplace_back(DeviceView{on.device, {}});
        for (const auto& row : resource_table)
            if (const auto used = on.usage[index(row.id)]; used != 0)
                device.resources.push_back({row.id, used, unlimited, {}});
        for (const auto& row : rate_table)
            if (const auto& delays = on.delays[rate_index(row.id)]; delays.calls != 0)
                view.rates.push_back({on.device, row.id, unlimited, unlimited, unlimited, Reason::configured, delays});
    }
    return view;
}

}  // namespace

bool TenantViews::is_current(const Kept& kept, const Tenant& tenant) const {
    const auto& ledger = tenant.ledger();
    const auto old = Clock::now() - kept.made;
    const bool same = kept.limits == tenant.limits()->id() && kept.generation == tenant.limits()->generation() &&
                      kept.ledger == ledger.number() && kept.claims == ledger.claims();
    if (same && old < (tenant.has_ledger() && ledger.at_rest() ? age_at_rest : age)) return true;
    // One that takes long waits for its turn, and nobody has to wait for that.
    const bool waits = ledger.turn.took > LookSchedule::cheap || old < age;
    return kept.ledger == ledger.number() && waits && !node_.schedule().is_due(ledger.turn);
}

std::vector<const TenantView*> TenantViews::of(const std::vector<Tenant*>& tenants) {
    auto by_cost = tenants;
    std::stable_sort(by_cost.begin(), by_cost.end(),
                     [](const Tenant* a, const Tenant* b) { return a->ledger().turn.took < b->ledger().turn.took; });
    const auto end = Clock::now() + time_for_all;
    for (auto* tenant : by_cost) update(*tenant, Clock::now() < end);
    if (figures_ > most_figures) forget_some();
    std::vector<const TenantView*> views;
    for (const auto* tenant : tenants) views.push_back(&kept_.at(tenant->key()).view);
    return views;
}

void TenantViews::update(Tenant& tenant, bool in_time) {
    const auto [found, first] = kept_.try_emplace(tenant.key());
    auto& kept = found->second;
    tenant.refresh();
    if (in_time && tenant.ledger().at_rest() && tenant.has_ledger()) tenant.ledger().check();
    if (!first && (!in_time || is_current(kept, tenant))) return;
    if (!in_time) {
        const auto figures = without_processes(tenant.ledger().figures());
        kept.view = sum_of({&figures}, *tenant.limits());
        return;
    }
    auto& turn = tenant.ledger().turn;
    const auto made = [&] { make(tenant, kept); };
    if (tenant.ledger().at_rest())
        node_.schedule().take(turn, made);
    else
        node_.schedule().add(turn, made);
    figures_ -= kept.figures;
    kept.figures = figures_of_processes(kept.view);
    figures_ += kept.figures;
}

void TenantViews::make(Tenant& tenant, Kept& kept) {
    const auto& limits = *tenant.limits();
    kept.made = Clock::now();
    kept.limits = limits.id();
    kept.generation = limits.generation();
    kept.ledger = tenant.ledger().number();
    if (!tenant.has_ledger()) {
        kept.view = sum(tenant);
        return;
    }
    if (!tenant.ledger().copy(node_.scratch())) node_.scratch() = LedgerCopy();
    kept.claims = node_.scratch().claims();
    kept.view = take_snapshot(node_.scratch(), limits);
    names_.name(kept.view, tenant.ledger().path(), kept.names);
}

TenantView TenantViews::sum(const Tenant& tenant) {
    std::vector<TenantView> views;
    for (const auto* other : node_.with_ledger())
        if (is_below(other->key(), tenant.key())) views.push_back(without_processes(other->ledger().figures()));
    std::vector<const TenantView*> below;
    for (const auto& view : views) below.push_back(&view);
    return sum_of(below, *tenant.limits());
}

// The processes of the largest, and all of tenants that are gone.
void TenantViews::forget_some() {
    std::erase_if(kept_, [&](const auto& entry) { return node_.find(entry.first) == nullptr; });
    figures_ = 0;
    for (const auto& [key, kept] : kept_) figures_ += kept.figures;
    while (figures_ > most_figures) {
        const auto largest = std::max_element(kept_.begin(), kept_.end(), [](const auto& a, const auto& b) {
            return a.second.figures < b.second.figures;
        });
        figures_ -= largest->second.figures;
        largest->second.figures = 0;
        largest->second.view.processes.clear();
        largest->second.names.clear();
    }
}

}  // namespace rdmaquota
