#include "policy/bypass.hpp"

#include <array>

#include <fmt/core.h>

namespace rdmaquota {

constexpr std::array<std::string_view, 4> names{"report", "charge", "limit", "kill"};

std::string_view name(Bypass bypass) noexcept { return names[static_cast<std::size_t>(bypass)]; }

Result<Bypass> parse_bypass(std::string_view text) {
    for (const auto bypass : {Bypass::report, Bypass::charge, Bypass::limit, Bypass::kill})
        if (text == name(bypass)) return bypass;
    return Error{fmt::format("'{}' is no answer to a bypass; write report, charge, limit or kill", text)};
}

}  // namespace rdmaquota
