// JSON output, with keys in the order in which they are written.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "tools/common/views/json_fwd.hpp"

// Instantiated once, in json.cpp.
extern template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace rdmaquota {

Json limit_json(std::uint64_t limit);  // null when unlimited; "25%" for a percentage

// Adds "percent":25.0 where a limit is written as a percentage.
void add_percent(Json& entry, std::uint64_t written);

// A member of an object that may come from a file or another version: where it is missing or of another type, "" or `otherwise`.
std::string text_member(const Json& object, const char* member);
std::uint64_t number_member(const Json& object, const char* member, std::uint64_t otherwise = 0);

// One line. Bytes that are not UTF-8 become U+FFFD: names come out of memory that tenants write.
std::string dump(const Json& json);

}  // namespace rdmaquota
