#include "tools/rdmaquotad/history/history_keeper.hpp"

#include <algorithm>
#include <ctime>
#include <functional>
#include <map>
#include <utility>

#include "policy/tenant.hpp"
#include "tools/common/devices.hpp"
#include "tools/rdmaquotad/loop/log.hpp"
#include "tools/rdmaquotad/history/history_file.hpp"

namespace rdmaquota {
namespace {

constexpr std::uint64_t between_saves_s = 60;

std::uint64_t now_s() { return static_cast<std::uint64_t>(std::time(nullptr)); }

}  // namespace

Result<void> HistoryKeeper::load() {
    save_at_ = now_s() + between_saves_s;
    auto history = load_history(node_.directory(), now_s());
    if (!history) return Error{history.error() + "; history begins anew"};
    history_ = std::move(*history);
    return {};
}

void HistoryKeeper::sample() {
    text_.reset();
    const auto now = sampled_at_ = now_s();
    const auto add = [&](const std::string& tenant, const DeviceFigures& on) {
        for (const auto& row : resource_table)
            history_.add({tenant, on.device, row.id}, now, on.usage[index(row.id)], on.peak[index(row.id)]);
    };
    const auto devices = machine_devices();
    for (const auto& on : node_figures(devices)) add(std::string(node_tenant), on);  // first: there is room for these
    for (const auto* tenant : node_.with_ledger())
        for (const auto& on : tenant->ledger().figures().devices)
            if (is_device_of(devices, on.device)) add(tenant->name(), on);
    if (sampled_at_ >= save_at_) save();
}

// Its peaks are its usage: when each tenant had its own is not known.
std::vector<DeviceFigures> HistoryKeeper::node_figures(const std::vector<std::string>& devices) const {
    std::map<std::string, DeviceFigures> node;
    for (const auto* tenant : node_.with_ledger())
        for (const auto& on : tenant->ledger().figures().devices) {
            if (!is_device_of(devices, on.device)) continue;
            auto& sum = node.try_emplace(on.device, DeviceFigures{on.device}).first->second;
            std::transform(on.usage.begin(), on.usage.end(), sum.usage.begin(), sum.usage.begin(), std::plus<>());
            sum.peak = sum.usage;
        }
    std::vector<DeviceFigures> figures;
    for (auto& [device, sum] : node) figures.push_back(std::move(sum));
    return figures;
}

void HistoryKeeper::save() {
    if (sampled_at_ == 0) return;
    save_at_ = now_s() + between_saves_s;
    const auto saved = save_history(node_.directory(), history_, sampled_at_);
    const auto error = saved ? std::string() : saved.error();
    if (std::exchange(said_unsaved_, error) != error && !error.empty()) log(Priority::error, error);
}

Text HistoryKeeper::one(const SeriesName& name) const {
    const auto now = now_s();
    if (const auto found = history_.all().find(name); found != history_.all().end())
        return std::make_shared<const std::string>(series_text(name, found->second, now));
    std::vector<const History::Series*> parts;
    for (const auto& [other, series] : history_.all())
        if (other.device == name.device && other.resource == name.resource && is_below(other.tenant, name.tenant))
            parts.push_back(&series);
    if (parts.empty()) return std::make_shared<const std::string>("null");
    return std::make_shared<const std::string>(series_text(name, History::sum(parts, now), now));
}

Text HistoryKeeper::last_hour(const HistoryText::Sees& sees) const {
    return std::make_shared<const std::string>(last_hour_text(history_, sees, now_s()));
}

Text HistoryKeeper::answer(const Request& request, const HistoryText::Sees& sees) {
    if (!text_) text_.emplace(history_, now_s());
    return text_->answer(request, sees);
}

}  // namespace rdmaquota
