#include "policy/limit.hpp"

#include <algorithm>
#include <array>
#include <span>

#include <fmt/core.h>

#include "policy/printable.hpp"

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
    return {fmt::format("'{}' is no limit for {}: write a number such as {}, or max", printable(text),
                        info(resource).name, info(resource).unit == Unit::bytes ? "4096, 512MiB, 4GiB" : "10, 10k")};
}

std::optional<std::uint64_t> factor_of(std::string_view suffix) {
    for (const auto& multiple : multiples)
        if (multiple.suffix == suffix) return multiple.factor;
    return std::nullopt;
}

// "12.5": 12 whole and 5 of a scale of 10, in 4 characters. By hand, since the library's conversion
// to double would bring libm into every program.
struct Decimal {
    std::uint64_t whole = 0;
    std::uint64_t fraction = 0;
    std::uint64_t scale = 1;
    std::size_t length = 0;
};

bool is_digit(std::string_view text, std::size_t at) noexcept {
    return at < text.size() && text[at] >= '0' && text[at] <= '9';
}

// At most six decimals, so that a fraction times the largest factor fits; a number that is too large
// stays too large.
std::optional<Decimal> read_decimal(std::string_view text) {
    constexpr std::uint64_t largest_scale = 1'000'000;
    Decimal number;
    auto& at = number.length;
    if (!is_digit(text, at)) return std::nullopt;
    for (; is_digit(text, at); ++at)
        number.whole = std::min(number.whole * 10 + static_cast<std::uint64_t>(text[at] - '0'), max_amount + 1);
    if (at == text.size() || text[at] != '.') return number;
    if (!is_digit(text, ++at)) return std::nullopt;
    for (; is_digit(text, at); ++at) {
        if (number.scale == largest_scale) return std::nullopt;
        number.fraction = number.fraction * 10 + static_cast<std::uint64_t>(text[at] - '0');
        number.scale *= 10;
    }
    return number;
}

Result<std::uint64_t> parse_percentage(Resource resource, std::string_view text) {
    const auto number = read_decimal(text);
    const auto tenths = number && number->scale <= 10
                            ? std::min(number->whole, most_tenths) * 10 + number->fraction * 10 / number->scale
                            : 0;
    if (tenths == 0 || tenths > most_tenths || number->length + 1 != text.size())
        return Error{fmt::format("'{}' is not a percentage for {}: write a number above 0 and up to 100, with one decimal at most, "
                                 "such as 25% or 12.5%", printable(text), info(resource).name)};
    if (has_capacity(resource)) return percentage(tenths);
    std::string possible;
    for (const auto& row : resource_table)
        if (has_capacity(row.id)) possible += fmt::format("{}{}", possible.empty() ? "" : ", ", row.name);
    return Error{fmt::format("{} cannot be limited in percent, since no device reports how many it has; write an amount, or limit "
                             "one of {}", info(resource).name, possible)};
}

std::string percent_text(std::uint64_t limit) {
    const auto tenths = tenths_of(limit);
    return std::to_string(tenths / 10) + (tenths % 10 == 0 ? "" : "." + std::to_string(tenths % 10)) + "%";
}

}  // namespace

std::uint64_t amount_of(std::uint64_t percentage, std::uint64_t capacity) noexcept {
    if (capacity == 0) return unlimited;
    return std::max<std::uint64_t>(1, std::min(capacity, max_amount) * tenths_of(percentage) / most_tenths);
}

Result<std::uint64_t> parse_limit(Resource resource, std::string_view text) {
    if (text == "max") return unlimited;
    if (text.ends_with('%')) return parse_percentage(resource, text);
    const auto number = read_decimal(text);
    if (!number) return bad_limit(resource, text);
    auto suffix = text.substr(number->length);
    if (info(resource).unit == Unit::bytes && suffix.ends_with('B')) suffix.remove_suffix(1);
    const auto factor = factor_of(suffix);
    if (!factor || number->fraction * *factor % number->scale != 0) return bad_limit(resource, text);
    const auto amount = number->whole * *factor + number->fraction * *factor / number->scale;
    if (number->whole > max_amount / *factor || amount > max_amount)
        return Error{fmt::format("'{}' is too large for {}: the largest limit is {}; for no limit write max",
                                 printable(text), info(resource).name, format_limit(resource, max_amount))};
    return amount;
}

Result<Setting> parse_setting(std::string_view text) {
    const auto equals = text.find('=');
    if (equals == std::string_view::npos)
        return Error{fmt::format("'{}' is no limit: write RESOURCE=N, for example qp=10", printable(text))};
    const auto resource = find_limit(text.substr(0, equals));
    if (!resource)
        return Error{fmt::format("unknown resource '{}': choose one of {}", printable(text.substr(0, equals)),
                                 limit_names())};
    const auto limit = parse_limit(*resource, text.substr(equals + 1));
    if (!limit) return Error{limit.error()};
    return Setting{*resource, limit.value()};
}

// In whole numbers, since formatting a floating-point number takes 2 KiB of stack, which a denied program may not have.
std::string format_amount(Resource resource, std::uint64_t amount) {
    if (amount == unlimited) return "max";
    if (is_percentage(amount)) return percent_text(amount);
    if (info(resource).unit == Unit::count || amount < kibi) return std::to_string(amount);
    static constexpr std::array units{"KiB", "MiB", "GiB", "TiB"};
    std::size_t unit = 0;
    while (unit + 1 < units.size() && amount >> 10 * (unit + 2) != 0) ++unit;
    const auto shift = 10 * (unit + 1);
    const auto rest = amount & ((std::uint64_t{1} << shift) - 1);
    const auto half = std::uint64_t{1} << (shift - 1);
    const auto tenths = (amount >> shift) * 10 + (rest * 10 + half) / (2 * half);
    const auto decimal = rest == 0 ? std::string() : "." + std::to_string(tenths % 10);
    return std::to_string(tenths / 10) + decimal + " " + units[unit];
}

std::string format_amount(Resource resource, std::uint64_t amount, std::uint64_t written) {
    if (!is_percentage(written)) return format_amount(resource, amount);
    return amount == unlimited ? percent_text(written) : format_amount(resource, amount) + " (" + percent_text(written) + ")";
}

std::string format_limit(Resource resource, std::uint64_t limit) {
    if (limit == unlimited) return "max";
    if (is_percentage(limit)) return percent_text(limit);
    if (info(resource).unit == Unit::bytes && limit != 0)
        for (const auto* suffix : {"Ti", "Gi", "Mi", "Ki"})
            if (const auto factor = *factor_of(suffix); limit % factor == 0)
                return std::to_string(limit / factor) + suffix + "B";
    return std::to_string(limit);
}

static std::string names_of(std::span<const ResourceInfo> rows) {
    std::string names;
    for (const auto& row : rows) {
        if (!names.empty()) names += ", ";
        names += row.name;
    }
    return names;
}

std::string resource_names() { return names_of(resource_table); }
std::string limit_names() { return names_of(limit_table); }

std::string_view name(Reason reason) noexcept {
    static constexpr std::string_view names[] = {"configured", "rule", "grant", "soft", "cluster", "other"};
    return names[static_cast<std::size_t>(reason)];
}

}  // namespace rdmaquota
