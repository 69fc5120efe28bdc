#include "tools/common/json.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace rdmaquota {

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace rdmaquota
