#include "policy/limit.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

struct Multiple {
    std::string_view suffix;
    std::uint64_t factor;
};

constexpr std::uint64_t kibi = 1024;
constexpr std::array<Multiple, 10> multiples{{
    {"Ki", kibi},
    {"Mi", kibi * kibi},
    {"Gi", kibi * kibi * kibi},
    {"Ti", kibi * kibi * kibi * kibi},
    {"k", 1000},
    {"K", 1000},
    {"M", 1000 * 1000},
    {"G", 1000ULL * 1000 * 1000},
    {"T", 1000ULL * 1000 * 1000 * 1000},
    {"", 1},
}};

Error bad_limit(Resource resource, std::string_view text) {
    return {fmt::format("'{}' is no limit for {}: write a number such as {}, or max", text, info(resource).name,
                        info(resource).unit == Unit::bytes ? "4096, 512MiB, 4GiB" : "10, 10k")};
}

// Instead of std::floor, for which the provider would have to load libm into every program.
bool whole(double number) noexcept { return number == static_cast<double>(static_cast<std::uint64_t>(number)); }

std::optional<std::uint64_t> factor_of(std::string_view suffix) {
    for (const auto& multiple : multiples)
        if (multiple.suffix == suffix) return multiple.factor;
    return std::nullopt;
}

}  // namespace

Result<std::uint64_t> parse_limit(Resource resource, std::string_view text) {
    if (text == "max") return unlimited;
    double number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number, std::chars_format::fixed);
    auto suffix = text.substr(static_cast<std::size_t>(end - text.data()));
    if (status != std::errc{} || std::signbit(number)) return bad_limit(resource, text);
    if (info(resource).unit == Unit::bytes && suffix.ends_with('B')) suffix.remove_suffix(1);
    const auto factor = factor_of(suffix);
    if (!factor) return bad_limit(resource, text);

    // Plain integers are taken exactly; a double has 53 bits, enough below max_amount (52 bits).
    const double amount = number * static_cast<double>(*factor);
    if (amount > static_cast<double>(max_amount))
        return Error{fmt::format("'{}' is too large for {}: the largest limit is {}; for no limit write max", text,
                                 info(resource).name, format_limit(resource, max_amount))};
    if (!whole(amount)) return bad_limit(resource, text);
    return static_cast<std::uint64_t>(amount);
}

Result<Setting> parse_setting(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos)
        return Error{fmt::format("'{}' is no limit: write RESOURCE=N, for example qp=10", text)};
    const auto resource = find_resource(text.substr(0, equals));
    if (!resource)
        return Error{fmt::format("unknown resource '{}': choose one of {}", text.substr(0, equals), resource_names())};
    const auto limit = parse_limit(*resource, text.substr(equals + 1));
    if (!limit) return Error{limit.error()};
    return Setting{*resource, limit.value()};
}

std::string format_amount(Resource resource, std::uint64_t amount) {
    if (amount == unlimited) return "max";
    if (info(resource).unit == Unit::count || amount < kibi) return fmt::format("{}", amount);
    static constexpr std::array<std::string_view, 4> units{"KiB", "MiB", "GiB", "TiB"};
    double scaled = static_cast<double>(amount);
    std::size_t unit = 0;
    for (scaled /= kibi; scaled >= kibi && unit + 1 < units.size(); scaled /= kibi) ++unit;
    return whole(scaled) ? fmt::format("{:.0f} {}", scaled, units[unit]) : fmt::format("{:.1f} {}", scaled, units[unit]);
}

std::string format_limit(Resource resource, std::uint64_t limit) {
    if (limit == unlimited) return "max";
    if (info(resource).unit == Unit::bytes && limit != 0)
        for (const auto suffix : {"Ti", "Gi", "Mi", "Ki"})
            if (const auto factor = *factor_of(suffix); limit % factor == 0)
                return fmt::format("{}{}B", limit / factor, suffix);
    return fmt::format("{}", limit);
}

std::string resource_names() {
    std::string names;
    for (const auto& row : resource_table) {
        if (!names.empty()) names += ", ";
        names += row.name;
    }
    return names;
}

}  // namespace rdmaquota
