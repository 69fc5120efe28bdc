#include "policy/text.hpp"

#include <iterator>

namespace rdmaquota {

std::string format_text(fmt::string_view pattern, fmt::format_args values) {
    std::string result;
    fmt::vformat_to(std::back_inserter(result), pattern, values);
    return result;
}

}  // namespace rdmaquota
