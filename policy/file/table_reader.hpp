// Reads values of the right kind, or notes the error; shared by the readers of the policy file.
//
// Reports the error that comes first in the file: toml++ keeps tables sorted by key, which is not the order in which a
// person reads.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include <fmt/core.h>

#include "policy/policy.hpp"
#include "policy/file/toml.hpp"

namespace rdmaquota {

// The compiled policy has room for paths of this length: of the log file, of the backstop.
inline constexpr std::size_t longest_path_bytes = 255;

class TableReader {
public:
    // `file` is the name for error messages, and outlives this.
    explicit TableReader(const std::string& file) : file_(file) {}

    const std::string& file() const noexcept { return file_; }
    // The first error in the order of the file.
    Result<void> verdict() const;

    void fail(const toml::node& node, const std::string& message) { fail(node.source().begin, message); }
    void fail(const toml::key& key, const std::string& message) { fail(key.source().begin, message); }
    void fail(const toml::source_position& position, const std::string& message);
    // `key` is none of `known`; names the likely one, or all of them.
    void unknown(std::string_view what, const toml::key& key, std::span<const std::string_view> known);

    // Each leaves `into` as it is when the node is of another kind.
    void flag(const toml::key& key, const toml::node& node, bool& into);
    void whole(const toml::key& key, const toml::node& node, std::uint32_t least, std::uint32_t most,
               std::uint32_t& into);
    // "50ms", "1s"
    void milliseconds(const toml::key& key, const toml::node& node, std::uint32_t most, std::uint32_t& into);
    void amount(Resource resource, const toml::node& node, std::uint64_t& into);
    void resource(const toml::key& key, const toml::node& node, std::optional<Resource>& into);
    template <class T>
    void word(const toml::key& key, const toml::node& node, Result<T> (*parse)(std::string_view), T& into) {
        const auto* text = node.as_string();
        if (text == nullptr)
            return fail(node, fmt::format("{} is {}; write a word in quotes", key.str(), kind_of(node)));
        const auto value = parse(text->get());
        if (!value) return fail(node, value.error());
        into = value.value();
    }
    const toml::table* as_table(const toml::key& key, const toml::node& node);

    static std::string kind_of(const toml::node& node);
    static std::span<const std::string_view> resource_list();

private:
    const std::string& file_;
    toml::source_position error_position_{};
    std::optional<std::string> error_;
};

}  // namespace rdmaquota
