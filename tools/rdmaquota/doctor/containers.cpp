// What the doctor examines where containers are given tenants (`rdmaquota cdi`).
#include "tools/rdmaquota/doctor/containers.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "tools/common/file_text.hpp"
#include "tools/common/json.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

constexpr const char* subject = "containers";
constexpr const char* kind = "rdmaquota.io/tenant";

// "physics/atlas" for the device "physics:atlas".
std::string tenant_of_device(std::string device) {
    std::replace(device.begin(), device.end(), ':', '/');
    return device;
}

// The files of the node that a container with the device gets, and the hook.
std::vector<std::string> paths_of(const Json& device) {
    std::vector<std::string> paths;
    const auto edits = device.value("containerEdits", Json::object());
    for (const auto& mount : edits.value("mounts", Json::array())) paths.push_back(mount.value("hostPath", ""));
    for (const auto& hook : edits.value("hooks", Json::array())) paths.push_back(hook.value("path", ""));
    return paths;
}

Finding finding_of(const std::string& file, const Json& device) {
    const auto tenant = tenant_of_device(device.value("name", ""));
    for (const auto& path : paths_of(device))
        if (std::error_code error; !fs::exists(path, error))
            return {
                Level::problem, subject,
                fmt::format(
                    "{} names {}, which is not there, so containers of tenant {} do not start: run 'rdmaquota reload', "
                    "and when it has the tenant, 'rdmaquota cdi {} --output {}'",
                    file, path, tenant, tenant, file)};
    return {Level::ok, subject, fmt::format("{} is whole, for tenant {}", file, tenant)};
}

// Others' specifications, and what is none, are not ours to judge. Throws where ours is malformed.
void examine_file(Findings& findings, const std::string& file) {
    const auto specification = Json::parse(file_text(file), nullptr, false);
    if (!specification.is_object() || specification.value("kind", "") != kind) return;
    for (const auto& device : specification.value("devices", Json::array()))
        findings.push_back(finding_of(file, device));
}

}  // namespace

void examine_containers(Findings& findings, const std::vector<std::string>& directories) {
    std::vector<std::string> files;
    for (const auto& directory : directories) {
        std::error_code error;
        for (const auto& entry : fs::directory_iterator(directory, error))
            if (entry.path().extension() == ".json") files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) try {
            examine_file(findings, file);
        } catch (const Json::exception&) {
            findings.push_back({Level::problem, subject, fmt::format("{} is malformed; write it anew", file)});
        }
}

}  // namespace rdmaquota
