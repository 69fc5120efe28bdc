// JSON output, with keys in the order in which they are written.
#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "policy/limit.hpp"

namespace rdmaquota {

using Json = nlohmann::ordered_json;

inline Json limit_json(std::uint64_t limit) { return limit == unlimited ? Json(nullptr) : Json(limit); }

// One line. Bytes that are not UTF-8 become U+FFFD: names come out of memory that tenants write.
inline std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace rdmaquota
