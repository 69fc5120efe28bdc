#include "tools/rdmaquotad/web/state_text.hpp"

#include <algorithm>
#include <iterator>
#include <span>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "policy/tenant.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

template <class... Arguments>
void append(std::string& text, fmt::format_string<Arguments...> form, Arguments&&... arguments) {
    fmt::format_to(std::back_inserter(text), form, std::forward<Arguments>(arguments)...);
}

std::string quoted(const std::string& text) { return dump(Json(text)); }

std::string limit(std::uint64_t value) { return value == unlimited ? "null" : fmt::format_int(value).str(); }

std::string known(std::uint32_t pid) { return pid == 0 ? "null" : fmt::format_int(pid).str(); }

std::string resources(std::span<const ResourceInfo> rows) {
    std::string text;
    for (const auto& row : rows)
        append(text, R"({}["{}","{}","{}"])", text.empty() ? "" : ",", row.name,
               row.unit == Unit::bytes ? "bytes" : "count", row.counts);
    return text;
}

}  // namespace

StateText::StateText(const std::vector<const TenantView*>& views, std::size_t most) {
    for (std::size_t i = 0; i < views.size(); ++i) {
        if (i != 0) tenants_ += ',';
        add_tenant(*views[i]);
        add_processes(*views[i], i, most);
    }
}

std::size_t StateText::number_of(const std::string& device) {
    const auto [found, added] = numbers_.try_emplace(device, devices_.size());
    if (added) devices_.push_back(device);
    return found->second;
}

void StateText::add_tenant(const TenantView& view) {
    append(tenants_, R"({{"name":{},"parent":{},"mode":"{}","weight":{},"processes":{},"sum":{},"cells":[)",
           quoted(view.name), view.name == node_tenant ? "null" : quoted(std::string(parent_of(view.name))),
           name(view.mode), view.weight, view.processes.size(), view.is_sum);
    for (const auto& device : view.devices)
        for (const auto& resource : device.resources) add_cell(device.name, resource);
    if (tenants_.back() == ',') tenants_.pop_back();
    tenants_ += "],\"rates\":[";
    for (const auto& rate : view.rates) add_rate(rate);
    if (tenants_.back() == ',') tenants_.pop_back();
    tenants_ += "]}";
}

// Not by the JSON library: there may be ten thousand of them.
void StateText::add_cell(const std::string& device, const ResourceView& view) {
    append(tenants_, "[{},{},{},{},{},{},{},{},{},{},{},", number_of(device), index(view.resource), view.usage,
           limit(view.limit), limit(view.configured), view.guarantee, limit(view.soft),
           view.above_soft() ? fmt::format_int(view.grace_left_s()).str() : "null",
           view.peak ? fmt::format_int(*view.peak).str() : "null", view.debt(), view.earmarked);
    if (view.reason == Reason::configured)
        tenants_ += "null],";
    else
        append(tenants_, "\"{}\"],", name(view.reason));
}

void StateText::add_rate(const RateView& view) {
    append(tenants_, "[{},{},{},{},{},{},{},", number_of(view.device), rate_index(view.rate), limit(view.limit), limit(view.configured),
           limit(view.burst), view.delays.calls, view.delays.ns / 1'000'000);
    if (view.reason == Reason::configured)
        tenants_ += "null],";
    else
        append(tenants_, "\"{}\"],", name(view.reason));
}

void StateText::add_processes(const TenantView& view, std::size_t tenant, std::size_t most) {
    if (view.is_sum) return;
    for (const auto& process : view.processes)
        for (const auto& device : process.devices)
            for (const auto& resource : device.resources) {
                if (resource.usage == 0) continue;
                auto& uses = uses_[{number_of(device.name), index(resource.resource)}];
                const auto place =
                    std::find_if(uses.begin(), uses.end(), [&](const Use& use) { return use.used < resource.usage; });
                if (place == uses.end() && uses.size() >= most) continue;
                uses.insert(place, {resource.usage, tenant, &process});
                if (uses.size() > most) uses.pop_back();
            }
}

std::string StateText::top(const UserName& user_name) const {
    std::string text;
    for (const auto& [key, uses] : uses_)
        for (const auto& use : uses) {
            const auto& process = *use.process;
            append(text, "{}[{},{},{},{},{},{},{},{}]", text.empty() ? "" : ",", key.first, key.second, use.tenant,
                   known(process.pid), quoted(process.comm), use.used, quoted(user_name(process.uid)),
                   known(process.inner_pid));
        }
    return text;
}

std::string StateText::text(const UserName& user_name) const {
    return fmt::format(R"("resources":[{}],"rates":[{}],"devices":{},"tenants":[{}],"top":[{}])", resources(resource_table),
                       resources(rate_table), dump(Json(devices_)),
                       tenants_, top(user_name));
}

}  // namespace rdmaquota
