// What the doctor examines where containers are given tenants (`rdmaquota cdi`).
#include "tools/rdmaquota/doctor/containers.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "tools/common/tenants/container_specification.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/text/file_text.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

constexpr const char* subject = "containers";
// "physics/atlas" for the device "physics:atlas".
std::string tenant_of_device(std::string device) {
    std::replace(device.begin(), device.end(), ':', '/');
    return device;
}

// Whether the device is one of the specification's.
bool has_device(const Json& specification, const Json& device) {
    const auto& devices = specification.at("devices");
    return std::find(devices.begin(), devices.end(), device) != devices.end();
}

Finding finding_of(const std::string& file, const Json& device, const SpecificationOf& specification_of) {
    const auto tenant = tenant_of_device(device.value("name", ""));
    const auto now = specification_of(tenant);
    if (!now)
        return {Level::problem, subject,
                fmt::format("{}: {}; containers of tenant {} do not start: remove the file, or see that 'rdmaquota cdi {} "
                            "--output {}' can write it",
                            file, now.error(), tenant, tenant, file)};
    if (now->is_null())
        return {Level::warning, subject, fmt::format("only root sees whether {} is whole, for tenant {}", file, tenant)};
    if (has_device(*now, device)) return {Level::ok, subject, fmt::format("{} is whole, for tenant {}", file, tenant)};
    return {Level::problem, subject,
            fmt::format("{} is from another version or was changed, so containers of tenant {} may not start, or not be "
                        "held to its quota: run 'rdmaquota cdi {} --output {}'",
                        file, tenant, tenant, file)};
}

// Others' specifications, and what is none, are not ours to judge. Throws where ours is malformed.
void examine_file(Findings& findings, const std::string& file, const SpecificationOf& specification_of) {
    const auto specification = Json::parse(file_text(file), nullptr, false);
    if (!specification.is_object() || specification.value("kind", "") != container_device_kind) return;
    for (const auto& device : specification.value("devices", Json::array()))
        findings.push_back(finding_of(file, device, specification_of));
}

}  // namespace

void examine_containers(Findings& findings, const SpecificationOf& specification_of,
                        const std::vector<std::string>& directories) {
    std::vector<std::string> files;
    for (const auto& directory : directories) {
        for (const auto& name : directory_names(directory))
            if (name.ends_with(".json")) files.push_back(directory + "/" + name);
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) try {
            examine_file(findings, file, specification_of);
        } catch (const Json::exception&) {
            findings.push_back({Level::problem, subject, fmt::format("{} is malformed; write it anew", file)});
        }
}

}  // namespace rdmaquota
