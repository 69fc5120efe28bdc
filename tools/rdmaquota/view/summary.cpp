#include "tools/rdmaquota/view/summary.hpp"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

#include <fmt/core.h>

#include "policy/limit.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/read_tenants.hpp"

namespace rdmaquota {
namespace {

constexpr Resource main_resources[] = {Resource::qp, Resource::cq, Resource::mr, Resource::mr_bytes};

void narrow_devices(std::vector<DeviceView>& devices, const Narrowing& to) {
    std::erase_if(devices, [&](const DeviceView& device) { return !is_asked(to.devices, device.name); });
    for (auto& device : devices)
        std::erase_if(device.resources, [&](const ResourceView& view) { return !is_asked(to.resources, view.resource); });
    std::erase_if(devices, [](const DeviceView& device) { return device.resources.empty(); });
}

void narrow_tenant(TenantReading& tenant, const Narrowing& to) {
    narrow_devices(tenant.view.devices, to);
    std::erase_if(tenant.view.rates, [&](const RateView& view) { return !is_asked(to.devices, view.device) || !is_asked(to.resources, view.rate); });
    std::erase_if(tenant.held, [&](const LimitsWriter::Held& held) {
        return !is_asked(to.devices, held.device) || !is_asked(to.resources, held.resource);
    });
    auto& processes = tenant.view.processes;
    for (auto& process : processes) narrow_devices(process.devices, to);
    std::erase_if(processes, [&](const ProcessView& process) {
        return (to.user && process.uid != *to.user) || (process.devices.empty() && (!to.devices.empty() || !to.resources.empty()));
    });
}

SummaryLine line_of(const TenantReading& tenant) {
    SummaryLine line;
    line.tenant = tenant.view.name;
    line.partial = tenant.view.is_partial;
    line.processes = tenant.view.processes.size();
    for (const auto& device : tenant.view.devices)
        for (const auto& view : device.resources) {
            if (device.name != total_device) line.usage[index(view.resource)] += view.used();
            if (view.limit == unlimited || view.used() == 0) continue;
            const SummaryLine::Fullest full{device.name, view.resource, view.used(), view.limit};
            if (!line.fullest || full.share() > line.fullest->share()) line.fullest = full;
        }
    return line;
}

double fullness(const SummaryLine& line) { return line.fullest ? line.fullest->share() : -1; }

bool comes_before(const SummaryLine& one, const SummaryLine& other, const SummaryOrder& order) {
    const auto at = index(order.resource);
    if (order.by == SummaryOrder::By::resource && one.usage[at] != other.usage[at]) return one.usage[at] > other.usage[at];
    if (order.by == SummaryOrder::By::fullness && fullness(one) != fullness(other)) return fullness(one) > fullness(other);
    return one.tenant < other.tenant;
}

std::size_t count_of(const std::vector<SummaryLine>& lines, std::size_t most) {
    return most == 0 ? lines.size() : std::min(most, lines.size());
}

std::string upper(std::string_view word) {
    std::string text(word);
    std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
    return text;
}

std::string fullest_words(const SummaryLine::Fullest& full) {
    return fmt::format("{} of {} {} on {}", format_amount(full.resource, full.usage), format_amount(full.resource, full.limit),
                       info(full.resource).name, printable(full.device));
}

}  // namespace

Result<Narrowing> narrowing(const std::vector<std::string>& devices, const std::vector<std::string>& resources) {
    Narrowing to{devices, {}, {}};
    for (const auto& word : resources) {
        const auto resource = find_limit(word);
        if (!resource) return Error{fmt::format("'{}' is no resource; choose of {}", printable(word), limit_names())};
        to.resources.push_back(*resource);
    }
    return to;
}

void narrow(std::vector<TenantReading>& tenants, const Narrowing& to) {
    if (!to.any()) return;
    for (auto& tenant : tenants) narrow_tenant(tenant, to);
    std::erase_if(tenants, [&](const TenantReading& tenant) {
        return to.user ? tenant.view.processes.empty() : tenant.view.devices.empty() && tenant.view.rates.empty();
    });
}

std::optional<SummaryOrder> summary_order(std::string_view word) {
    if (word == "full") return SummaryOrder{SummaryOrder::By::fullness};
    if (word == "name") return SummaryOrder{SummaryOrder::By::name};
    if (const auto resource = find_resource(word)) return SummaryOrder{SummaryOrder::By::resource, *resource};
    return std::nullopt;
}

double SummaryLine::Fullest::share() const noexcept { return share_of_limit(usage, limit); }

bool SummaryLine::uses_something() const noexcept {
    return processes != 0 || std::any_of(usage.begin(), usage.end(), [](std::uint64_t amount) { return amount != 0; });
}

std::vector<SummaryLine> summarize(const std::vector<TenantReading>& tenants, const SummaryOrder& order) {
    std::vector<SummaryLine> lines;
    for (const auto& tenant : tenants) lines.push_back(line_of(tenant));
    std::stable_sort(lines.begin(), lines.end(), [&](const auto& one, const auto& other) { return comes_before(one, other, order); });
    return lines;
}

Table summary_table(const std::vector<SummaryLine>& lines, std::size_t most, const std::vector<Resource>& resources) {
    const std::vector<Resource> columns =
        resources.empty() ? std::vector<Resource>(std::begin(main_resources), std::end(main_resources)) : resources;
    std::vector<std::string> header{"TENANT", "FULL%"};
    std::vector<Align> alignment{Align::left, Align::right};
    for (const auto resource : columns) {
        header.push_back(upper(info(resource).name));
        alignment.push_back(Align::right);
    }
    header.insert(header.end(), {"PROCS", "FULLEST"});
    alignment.insert(alignment.end(), {Align::right, Align::left});
    Table table(std::move(header), std::move(alignment));
    for (std::size_t i = 0; i < count_of(lines, most); ++i) {
        const auto& line = lines[i];
        std::vector<std::string> row{printable(line.tenant) + (line.partial ? " (in part)" : ""), line.fullest ? fmt::format("{:.0f}", 100 * line.fullest->share()) : "-"};
        for (const auto resource : columns) row.push_back(format_amount(resource, line.usage[index(resource)]));
        row.push_back(line.processes == 0 ? "-" : std::to_string(line.processes));
        row.push_back(line.fullest ? fullest_words(*line.fullest) : "-");
        table.add(std::move(row));
    }
    return table;
}

Json summary_json(const std::vector<SummaryLine>& lines, std::size_t most) {
    Json list = Json::array();
    for (std::size_t i = 0; i < count_of(lines, most); ++i) {
        const auto& line = lines[i];
        Json usage = Json::object();
        for (const auto& row : resource_table)
            if (line.usage[index(row.id)] != 0) usage[std::string(row.name)] = line.usage[index(row.id)];
        Json full = nullptr;
        if (line.fullest)
            full = Json{{"device", line.fullest->device}, {"resource", info(line.fullest->resource).name},
                        {"usage", line.fullest->usage}, {"limit", line.fullest->limit}};
        list.push_back(Json{{"name", line.tenant}, {"processes", line.processes}, {"usage", std::move(usage)}, {"fullest", std::move(full)}});
    }
    return list;
}

std::vector<std::string> denial_lines(const EventsByTime& events, const std::string& since) {
    std::map<std::tuple<std::string, std::string, std::string>, std::uint64_t> counts;
    for (const auto& [time, event] : events)
        if ((text_member(event, "kind") == "denied" || text_member(event, "kind") == "refused") && text_member(event, "time") >= since)
            counts[{printable(text_member(event, "tenant")), printable(text_member(event, "resource")),
                    printable(text_member(event, "device"))}] += number_member(event, "count", number_member(event, "times", 1));
    std::vector<std::pair<std::uint64_t, std::string>> lines;
    for (const auto& [what, count] : counts) {
        const auto& [tenant, resource, device] = what;
        lines.emplace_back(count, fmt::format("{}: {} on {}, {} time{}", tenant, resource, device, count, count == 1 ? "" : "s"));
    }
    std::stable_sort(lines.begin(), lines.end(), [](const auto& one, const auto& other) { return one.first > other.first; });
    std::vector<std::string> texts;
    for (auto& [count, text] : lines) texts.push_back(std::move(text));
    return texts;
}

}  // namespace rdmaquota
