#include "policy/file/table_reader.hpp"

#include <array>
#include <charconv>

#include "policy/file/did_you_mean.hpp"
#include "policy/printable.hpp"

namespace rdmaquota {

Result<void> TableReader::verdict() const {
    if (error_) return Error{*error_};
    return {};
}

void TableReader::fail(const toml::source_position& position, const std::string& message) {
    if (error_ && !(position < error_position_)) return;
    error_position_ = position;
    error_ = location(file_, position) + message;
}

void TableReader::unknown(std::string_view what, const toml::key& key, std::span<const std::string_view> known) {
    const auto guess = did_you_mean(key.str(), known);
    if (!guess.empty()) return fail(key, fmt::format("unknown {} '{}'{}", what, key.str(), guess));
    std::string names;
    for (const auto name : known) names += fmt::format("{}{}", names.empty() ? "" : ", ", name);
    fail(key, fmt::format("unknown {} '{}'; choose one of {}", what, key.str(), names));
}

void TableReader::flag(const toml::key& key, const toml::node& node, bool& into) {
    const auto* value = node.as_boolean();
    if (value == nullptr) return fail(node, fmt::format("{} is {}; write true or false", key.str(), kind_of(node)));
    into = value->get();
}

void TableReader::whole(const toml::key& key, const toml::node& node, std::uint32_t least, std::uint32_t most,
                        std::uint32_t& into) {
    const auto* number = node.as_integer();
    if (number == nullptr || number->get() < least || number->get() > most)
        return fail(node, fmt::format("{} must be a whole number from {} to {}", key.str(), least, most));
    into = static_cast<std::uint32_t>(number->get());
}

void TableReader::milliseconds(const toml::key& key, const toml::node& node, std::uint32_t most, std::uint32_t& into) {
    const auto* text = node.as_string();
    if (text == nullptr) return fail(node, fmt::format("{} is {}; write a word in quotes", key.str(), kind_of(node)));
    std::uint32_t number = 0;
    const auto* last = text->get().data() + text->get().size();
    const auto [end, status] = std::from_chars(text->get().data(), last, number);
    const std::string_view unit(end, static_cast<std::size_t>(last - end));
    const std::uint32_t unit_ms = unit == "ms" ? 1 : unit == "s" ? 1000 : 0;
    if (status != std::errc{} || unit_ms == 0 || number > most / unit_ms)
        return fail(node, fmt::format("'{}' is no time to wait; write one such as \"50ms\" or \"1s\", at most {}s",
                                      printable(text->get()), most / 1000));
    into = number * unit_ms;
}

void TableReader::amount(Resource resource, const toml::node& node, std::uint64_t& into) {
    const auto* text = node.as_string();
    const auto* number = node.as_integer();
    if (text == nullptr && number == nullptr)
        return fail(node, fmt::format("{} is {}; write a whole number, or a string such as \"{}\" or \"max\"",
                                      info(resource).name, kind_of(node),
                                      info(resource).unit == Unit::bytes ? "10GiB" : "10k"));
    const auto limit = parse_limit(resource, text != nullptr ? text->get() : std::to_string(number->get()));
    if (!limit) return fail(node, limit.error());
    into = limit.value();
}

void TableReader::resource(const toml::key& key, const toml::node& node, std::optional<Resource>& into) {
    const auto* text = node.as_string();
    const auto found = text == nullptr ? std::nullopt : find_resource(text->get());
    if (!found) return fail(node, fmt::format("{} must be one of {}", key.str(), resource_names()));
    into = found;
}

const toml::table* TableReader::as_table(const toml::key& key, const toml::node& node) {
    if (!node.is_table()) fail(node, fmt::format("{} is {}; it must be a table", key.str(), kind_of(node)));
    return node.as_table();
}

std::string TableReader::kind_of(const toml::node& node) {
    switch (node.type()) {
        case toml::node_type::table:
            return "a table";
        case toml::node_type::array:
            return "a list";
        case toml::node_type::string:
            return "a string";
        case toml::node_type::integer:
            return "a number";
        case toml::node_type::floating_point:
            return "a number with a fraction";
        case toml::node_type::boolean:
            return "true or false";
        default:
            return "a date or time";
    }
}

std::span<const std::string_view> TableReader::resource_list() {
    static const auto names = [] {
        std::array<std::string_view, limit_count> list;
        for (const auto& row : limit_table) list[index(row.id)] = row.name;
        return list;
    }();
    return names;
}

}  // namespace rdmaquota
