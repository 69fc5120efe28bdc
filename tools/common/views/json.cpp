#include "tools/common/views/json.hpp"

#include "policy/limit.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace rdmaquota {

Json limit_json(std::uint64_t limit) {
    if (is_percentage(limit)) return Json(format_limit(Resource::qp, limit));
    return limit == unlimited ? Json(nullptr) : Json(limit);
}

void add_percent(Json& entry, std::uint64_t written) {
    if (is_percentage(written)) entry["percent"] = static_cast<double>(tenths_of(written)) / 10;
}

std::string text_member(const Json& object, const char* member) {
    const auto found = object.find(member);
    return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::uint64_t number_member(const Json& object, const char* member, std::uint64_t otherwise) {
    const auto found = object.find(member);
    return found != object.end() && found->is_number_unsigned() ? found->get<std::uint64_t>() : otherwise;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace rdmaquota
