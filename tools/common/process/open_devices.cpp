#include "tools/common/process/open_devices.hpp"

#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/core.h>

#include "tools/common/text/directory_names.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

std::optional<OpenDevice> open_device(const fs::path& link) {
    struct stat status {};
    if (::stat(link.c_str(), &status) != 0 || !S_ISCHR(status.st_mode)) return std::nullopt;
    std::error_code error;
    const auto device =
        fs::canonical(fmt::format("/sys/dev/char/{}:{}", major(status.st_rdev), minor(status.st_rdev)), error);
    if (error || device.parent_path().filename() != "infiniband_verbs") return std::nullopt;
    OpenDevice found{0, device.filename().string(), ""};
    const auto number = link.filename().string();
    std::from_chars(number.data(), number.data() + number.size(), found.descriptor);
    std::ifstream(device / "ibdev") >> found.name;
    return found;
}

}  // namespace

Result<std::vector<OpenDevice>> open_devices(int pid) {
    std::vector<OpenDevice> found;
    int error = 0;
    const auto descriptors = fmt::format("/proc/{}/fd", pid);
    for (const auto& name : directory_names(descriptors, error))
        if (auto device = open_device(fs::path(descriptors) / name)) found.push_back(std::move(*device));
    if (error != 0) return Error{fmt::format("cannot look into process {}: {}", pid, std::strerror(error))};
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.descriptor < b.descriptor; });
    return found;
}

}  // namespace rdmaquota
