#include "tools/common/devices.hpp"

#include <algorithm>
#include <cstdlib>

#include "policy/policy.hpp"
#include "tools/common/text/directory_names.hpp"

namespace rdmaquota {

std::vector<std::string> machine_devices() {
    auto names = directory_names("/sys/class/infiniband");
    std::sort(names.begin(), names.end());
    return names;
}

bool is_device_of(const std::vector<std::string>& devices, const std::string& name) {
    if (devices.empty() || name == total_device || std::binary_search(devices.begin(), devices.end(), name))
        return true;
    const auto slash = name.rfind('/');
    const auto port = slash == name.npos ? 0 : std::strtoul(name.c_str() + slash + 1, nullptr, 10);
    return port >= 1 && port <= 254 && name.substr(slash + 1) == std::to_string(port) &&
           std::binary_search(devices.begin(), devices.end(), name.substr(0, slash));
}

}  // namespace rdmaquota
