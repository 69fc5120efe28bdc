#include "tools/rdmaquota/view/show_history.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/core.h>

#include "policy/limit.hpp"
#include "tools/common/json.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t cells = 60;

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
    table.add({printable(series.value("tenant", "")), printable(series.value("device", "")), std::string(info(resource).name), title,
               amount(resource, usage.back()), format_amount(resource, largest(peak)),
               sparkline(terminal.unicode, peak, cells)});
}

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
    const auto& list = answer["history"];
    if (list.empty()) return fmt::print("nothing was used in the last 168 hours\n");
    Table table({"TENANT", "DEVICE", "RESOURCE", "BY", "NOW", "PEAK", ""},
                {Align::left, Align::left, Align::left, Align::left, Align::right, Align::right, Align::left});
    for (const auto& series : list) {
        const auto resource = find_resource(series.value("resource", ""));
        if (!resource) continue;  // of a newer rdmaquotad
        add_ring(table, terminal, series, *resource, "seconds", "second");
        add_ring(table, terminal, series, *resource, "minutes", "minute");
        add_ring(table, terminal, series, *resource, "hours", "hour");
    }
    table.print(terminal);
}

}  // namespace rdmaquota
