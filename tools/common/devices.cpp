#include "tools/common/devices.hpp"

#include <algorithm>
#include <filesystem>

namespace rdmaquota {

std::vector<std::string> machine_devices() {
    namespace fs = std::filesystem;
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator entry("/sys/class/infiniband", error), end; !error && entry != end;
         entry.increment(error))
        names.push_back(entry->path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
}

}  // namespace rdmaquota
