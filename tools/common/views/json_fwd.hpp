// The name of JSON values, for headers; who builds or reads one includes json.hpp, which takes two seconds to compile.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace rdmaquota {

using Json = nlohmann::ordered_json;

}  // namespace rdmaquota
