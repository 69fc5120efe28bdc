#include "tools/common/guard/lockdown.hpp"

#include <fstream>
#include <string>

namespace rdmaquota {

bool is_locked_down() {
    std::ifstream file("/sys/kernel/security/lockdown");
    std::string levels;
    return std::getline(file, levels) && levels.find("[confidentiality]") != levels.npos;
}

}  // namespace rdmaquota
