#include "tools/common/node_checks.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

void add_devices(const ScopeLimits& rows, std::set<std::string>& devices) {
    for (const auto& row : rows) devices.insert(row.device);
}

std::set<std::string> devices_of(const Policy& policy) {
    std::set<std::string> devices;
    for (const auto* rows : {&policy.process, &policy.node}) add_devices(*rows, devices);
    for (const auto& tenant : policy.tenants) {
        for (const auto& rows : tenant.limits) add_devices(rows, devices);
        for (const auto* rows : {&tenant.guarantees, &tenant.softs}) add_devices(*rows, devices);
    }
    return devices;
}

// By the permissions for others: programs of any user log.
bool others_may_append(const std::string& file) {
    struct stat status {};
    if (::stat(file.c_str(), &status) == 0) return S_ISREG(status.st_mode) && (status.st_mode & S_IWOTH) != 0;
    const auto directory = std::filesystem::path(file).parent_path().string();
    return ::stat(directory.c_str(), &status) == 0 && (status.st_mode & S_IWOTH) != 0;
}

}  // namespace

std::vector<std::string> warnings_of_node(const Policy& policy) {
    std::vector<std::string> warnings;
    for (const auto& device : devices_of(policy))
        if (auto missing = missing_port(device); !missing.empty())
            warnings.push_back(missing + "; its limit holds for nothing");
    if (policy.log_target == LogTarget::file && !others_may_append(policy.log_file))
        warnings.push_back(
            fmt::format("ordinary users cannot append to the log file {}: their programs log to "
                        "standard error",
                        printable(policy.log_file)));
    return warnings;
}

std::string missing_backstop(const Policy& policy) {
    const auto& group = policy.sidecar.backstop;
    return group.empty() || exists("/sys/fs/cgroup" + group) ? std::string() : group;
}

std::string missing_port(const std::string& device) {
    const auto slash = device.find('/');
    if (slash == device.npos) return {};
    const auto of = "/sys/class/infiniband/" + device.substr(0, slash);
    if (!exists(of) || exists(of + "/ports" + device.substr(slash))) return {};
    return fmt::format("device {} has no port {}", printable(device.substr(0, slash)),
                       printable(device.substr(slash + 1)));
}

}  // namespace rdmaquota
