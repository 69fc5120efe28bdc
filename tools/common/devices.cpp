#include "tools/common/devices.hpp"

#include <algorithm>

#include "tools/common/directory_names.hpp"

namespace rdmaquota {

std::vector<std::string> machine_devices() {
    auto names = directory_names("/sys/class/infiniband");
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace rdmaquota
