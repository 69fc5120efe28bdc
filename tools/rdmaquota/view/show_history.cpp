#include "tools/rdmaquota/view/show_history.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "policy/limit.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

// What fits beside the other columns, as far as a terminal has room for them.
std::size_t cells(const Terminal& terminal) {
    constexpr std::size_t most = 60, least = 20, others = 44;
    if (terminal.width == 0 || terminal.width >= most + others) return most;
    return std::max(least, terminal.width - std::min(terminal.width, others));
}

std::uint64_t largest(const Json& values) {
    std::uint64_t most = 0;
    for (const auto& value : values)
        if (value.is_number_unsigned()) most = std::max(most, value.get<std::uint64_t>());
    return most;
}

std::string amount(Resource resource, const Json& value) {
    return value.is_number_unsigned() ? format_amount(resource, value.get<std::uint64_t>()) : "-";
}

void add_ring(Table& table, const Terminal& terminal, const Json& series, Resource resource, const char* ring,
              const char* title) {
    const auto& usage = series[ring]["usage"];
    const auto& peak = series[ring]["peak"];
    if (usage.empty()) return;
    table.add({printable(series.value("device", "")), std::string(info(resource).name), title,
               amount(resource, usage.back()), format_amount(resource, largest(peak)),
               sparkline(terminal.unicode, peak, cells(terminal))});
}

bool is_empty(const Json& series) {
    return series["seconds"]["usage"].empty() && series["minutes"]["usage"].empty() && series["hours"]["usage"].empty();
}

// What is of one tenant.
class TenantHistory {
public:
    explicit TenantHistory(std::string tenant) : tenant_(std::move(tenant)) {}
    const std::string& tenant() const { return tenant_; }

    void add(const Terminal& terminal, const Json& series, Resource resource) {
        add_ring(table_, terminal, series, resource, "seconds", "second");
        add_ring(table_, terminal, series, resource, "minutes", "minute");
        add_ring(table_, terminal, series, resource, "hours", "hour");
    }
    void print(const Terminal& terminal) const {
        fmt::print("{}\n\n", coloured(terminal, Colour::bold, "tenant " + printable(tenant_)));
        table_.print(terminal);
    }

private:
    std::string tenant_;
    Table table_{{"DEVICE", "RESOURCE", "BY", "NOW", "PEAK", ""},
                 {Align::left, Align::left, Align::left, Align::right, Align::right, Align::left}};
};

}  // namespace

std::string sparkline(bool unicode, const Json& values, std::size_t width) {
    static constexpr std::array<const char*, 8> blocks{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static constexpr std::array<const char*, 8> plain{"_", ".", "-", "=", "+", "*", "%", "#"};
    const auto& signs = unicode ? blocks : plain;
    const auto most = largest(values);
    std::string line;
    for (std::size_t i = values.size() > width ? values.size() - width : 0; i < values.size(); ++i) {
        if (!values[i].is_number_unsigned()) {
            line += ' ';
            continue;
        }
        const auto share =
            most == 0 ? 0 : static_cast<double>(values[i].get<std::uint64_t>()) / static_cast<double>(most);
        line += signs[static_cast<std::size_t>(share * static_cast<double>(signs.size() - 1) + 0.5)];
    }
    return line;
}

void print_history(const Terminal& terminal, const Json& answer) {
    std::vector<TenantHistory> tenants;
    for (const auto& series : answer["history"]) {
        const auto resource = find_resource(series.value("resource", ""));
        if (!resource || is_empty(series)) continue;  // of a newer rdmaquotad; or long ago
        auto tenant = series.value("tenant", "");
        if (tenants.empty() || tenants.back().tenant() != tenant) tenants.emplace_back(std::move(tenant));
        tenants.back().add(terminal, series, *resource);
    }
    if (tenants.empty()) fmt::print("rdmaquotad has seen nothing in use in the last 168 hours\n");
    for (const auto& tenant : tenants) {
        if (&tenant != &tenants.front()) fmt::print("\n");
        tenant.print(terminal);
    }
}

}  // namespace rdmaquota
