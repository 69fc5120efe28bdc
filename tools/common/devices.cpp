#include "tools/common/devices.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <set>

#include "policy/policy.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/text/file_text.hpp"

namespace rdmaquota {

UverbsDevices UverbsDevices::read(const std::string& directory) {
    UverbsDevices devices;
    auto identities = directory_names(directory);
    std::sort(identities.begin(), identities.end(), [](const auto& a, const auto& b) { return uverbs_number(a) < uverbs_number(b); });
    std::set<std::string> taken;
    for (const auto& identity : identities) {
        auto name = first_line(directory + "/" + identity + "/ibdev");
        if (name.empty()) continue;
        if (!taken.insert(name).second) name += second_of_name + identity;
        devices.names_[identity] = name;
    }
    return devices;
}

const UverbsDevices& UverbsDevices::now() {
    using Clock = std::chrono::steady_clock;
    thread_local UverbsDevices devices;
    thread_local Clock::time_point due;
    if (Clock::now() < due) return devices;
    devices = read("/sys/class/infiniband_verbs");
    due = Clock::now() + std::chrono::milliseconds(100);
    return devices;
}

std::string UverbsDevices::name(std::string_view identity, std::string_view last_name) const {
    const auto found = names_.find(without_port(identity));
    if (found != names_.end()) return found->second + std::string(port_part(identity));
    const auto last = without_port(last_name);
    const bool is_taken = std::any_of(names_.begin(), names_.end(), [&](const auto& other) { return other.second == last; });
    if (is_taken) return std::string(last) + second_of_name + std::string(identity);
    return std::string(last_name.empty() ? identity : last_name);
}

std::vector<std::string> UverbsDevices::identities() const {
    std::vector<std::string> all;
    for (const auto& [identity, name] : names_) all.push_back(identity);
    return all;
}

std::vector<std::string> UverbsDevices::names() const {
    std::vector<std::string> all;
    for (const auto& [identity, name] : names_) all.push_back(name);
    return all;
}

std::vector<std::string> machine_devices() {
    auto names = UverbsDevices::now().names();
    for (auto& name : directory_names("/sys/class/infiniband")) names.push_back(std::move(name));
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

std::vector<std::string> policy_devices() {
    auto names = machine_devices();
    std::erase_if(names, [](const std::string& name) { return name.find(second_of_name) != name.npos; });
    return names;
}

bool all_have_public_libraries() {
    const auto has_one = [](const std::string& device) {
        std::error_code error;
        auto driver = std::filesystem::read_symlink("/sys/class/infiniband/" + device + "/device/driver", error).filename().string();
        if (error) driver = device;
        return std::any_of(public_providers.begin(), public_providers.end(), [&](auto provider) { return driver.starts_with(provider); });
    };
    const auto devices = machine_devices();
    return !devices.empty() && std::all_of(devices.begin(), devices.end(), has_one);
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
