#include "policy/file/toml.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t largest_file_bytes = 1 << 20;

// Dotted keys nest one table per dot, and the tables are destroyed recursively: without a bound, a
// line of some 100,000 dots overflows the stack.
constexpr std::size_t longest_line_bytes = 1000;

struct Complaint {
    std::size_t at;  // byte of the line
    std::string_view what;
};

// toml++ 3.3 runs into undefined behaviour when it looks for white space at characters such as 'é'
// outside strings and comments, and after a line break in a string. A policy needs neither.
std::optional<Complaint> complaint_about(std::string_view line) {
    if (line.size() > longest_line_bytes) return Complaint{longest_line_bytes, "the line is too long"};
    char quote = 0;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const char c = line[i];
        if (quote == 0 && c == '#') return std::nullopt;
        if (quote == 0 && static_cast<unsigned char>(c) >= 0x80) return Complaint{i, "this character needs quotes"};
        if (quote == 0 && (line.substr(i, 3) == "\"\"\"" || line.substr(i, 3) == "'''"))
            return Complaint{i, "a policy needs no multi-line strings"};
        if (quote == '"' && c == '\\')
            ++i;
        else if (quote == 0 ? c == '"' || c == '\'' : c == quote)
            quote = quote == 0 ? c : '\0';
    }
    return std::nullopt;
}

Result<void> check_lines(std::string_view text, const std::string& file) {
    if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
    for (toml::source_index number = 1; !text.empty(); ++number) {
        const auto end = std::min(text.find('\n'), text.size());
        if (const auto complaint = complaint_about(text.substr(0, end))) {
            const auto column = static_cast<toml::source_index>(complaint->at + 1);
            return Error{
                fmt::format("{}{}; is this a policy file?", location(file, {number, column}), complaint->what)};
        }
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return {};
}

// toml++ says what the parser was doing; this says what the file's author can do.
std::string explain(std::string_view description) {
    struct Hint {
        std::string_view when;
        std::string_view say;
    };
    static constexpr std::array<Hint, 11> hints{{
        {"nested value depth", "nested too deeply; a policy needs only tables of limits"},
        {"utf-8", "this is not UTF-8 text; is it a policy file?"},
        {"control character", "there is a control character; is this a policy file?"},
        {"saw '\\u00", "there is a control character; is this a policy file?"},
        {"saw '/'", "a name or path with '/' must be quoted: write \"physics/atlas\""},
        {"saw '{'", "a name with braces must be quoted: write \"user/{user}\""},
        {"saw '*'", "the device * must be quoted: write \"*\""},
        {"not representable", "the number is too large; for no limit write \"max\""},
        {"saw 'k'", "a number with a unit must be quoted: write \"10k\", \"4GiB\""},
        {"expected digit, saw", "a number with a unit must be quoted: write \"10k\", \"4GiB\""},
        {"could not determine value type", "a word must be quoted: write \"max\", \"enforce\""},
    }};
    for (const auto& hint : hints)
        if (description.find(hint.when) != std::string_view::npos) return std::string(hint.say);

    if (const auto colon = description.find(": "); description.starts_with("Error while ") && colon != description.npos)
        description.remove_prefix(colon + 2);
    constexpr std::string_view twice = "cannot redefine existing ";
    if (description.starts_with("cannot redefine existing table"))
        return "this table is there twice; make one of the two";
    if (description.starts_with(twice))
        return fmt::format("{} is there twice; remove one of the two", description.substr(twice.size()));
    return fmt::format("syntax error: {}; rdmaquota.toml(5) has examples", description);
}

}  // namespace

std::string distrust_of(const std::string& path, const struct stat& status) {
    if (status.st_uid != 0 && status.st_uid != ::geteuid())
        return fmt::format("{}: belongs to user {}, who may change it: make root its owner (chown root)", path,
                           status.st_uid);
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && (!S_ISDIR(status.st_mode) || (status.st_mode & S_ISVTX) == 0))
        return fmt::format("{}: others may write it (mode {:04o}): take that away (chmod go-w)", path,
                           status.st_mode & 07777U);
    return "";
}

Result<std::string> read_text(const std::string& path) {
    auto file = read_file_text(path);
    if (!file) return Error{file.error()};
    if (!file->distrust.empty()) return Error{file->distrust};
    return std::move(file->text);
}

Result<FileText> read_file_text(const std::string& path) {
    const auto failed = [&path](int error) {
        return Error{fmt::format("{}: cannot read: {}", path, std::strerror(error))};
    };
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return failed(errno);
    std::string text(largest_file_bytes + 1, '\0');
    std::size_t size = 0;
    ssize_t got = 0;
    while (size < text.size() && (got = ::read(fd, text.data() + size, text.size() - size)) != 0) {
        if (got > 0) size += static_cast<std::size_t>(got);
        if (got < 0 && errno != EINTR) break;
    }
    const int error = got < 0 ? errno : 0;
    struct stat status {};
    const bool known = ::fstat(fd, &status) == 0;
    ::close(fd);
    if (error != 0) return failed(error);
    if (size > largest_file_bytes) return Error{fmt::format("{}: larger than 1 MiB; is this a policy file?", path)};
    text.resize(size);
    return FileText{std::move(text), known && S_ISREG(status.st_mode) ? distrust_of(path, status) : ""};
}

Result<toml::table> parse_toml(const std::string& text, const std::string& file) {
    if (const auto lines = check_lines(text, file); !lines) return Error{lines.error()};
    auto parsed = toml::parse(std::string_view(text), std::string_view(file));
    if (parsed) return std::move(parsed).table();
    const auto& error = parsed.error();
    return Error{location(file, error.source().begin) + printable(explain(error.description()))};
}

std::string location(std::string_view file, const toml::source_position& position) {
    return fmt::format("{}:{}:{}: ", file, position.line, position.column);
}

}  // namespace rdmaquota
