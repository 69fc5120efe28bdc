#include "tools/common/views/json.hpp"

#include "policy/limit.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace rdmaquota {

Json limit_json(std::uint64_t limit) { return limit == unlimited ? Json(nullptr) : Json(limit); }

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace rdmaquota
