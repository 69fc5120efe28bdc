#include "tools/common/process/process_stat.hpp"

#include <cstdlib>
#include <sstream>

#include "tools/common/text/file_text.hpp"

namespace rdmaquota {

std::uint64_t start_time_in(std::string_view stat) {
    const auto name_end = stat.rfind(')');
    if (name_end == stat.npos) return 0;
    std::istringstream words{std::string(stat.substr(name_end + 1))};
    std::string word;
    for (int field = 3; field <= 22; ++field) words >> word;
    return words ? std::strtoull(word.c_str(), nullptr, 10) : 0;
}

std::uint64_t start_time_of(const std::string& directory) { return start_time_in(file_text(directory + "/stat")); }

}  // namespace rdmaquota
