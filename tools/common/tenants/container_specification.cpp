#include "tools/common/tenants/container_specification.hpp"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "tools/common/config.hpp"
#include "tools/common/tenants/container.hpp"
#include "tools/common/tenants/tenant_files.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }
bool is_letter_or_digit(char c) noexcept { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// CDI's names of devices have letters, digits and any of _ - . : in their middle. A ':' stands for a '/'.
Result<std::string> device_name(const std::string& tenant) {
    auto name = tenant;
    std::replace(name.begin(), name.end(), '/', ':');
    const bool legal = tenant.find(':') == tenant.npos && is_letter_or_digit(name.front()) && is_letter_or_digit(name.back()) &&
                       std::all_of(name.begin(), name.end(), [](char c) {
                           return is_letter_or_digit(c) || std::string_view("_-.:").find(c) != std::string_view::npos;
                       });
    if (legal) return name;
    return Error{fmt::format("'{}' cannot name a CDI device: give the tenant a name of letters, digits and / _ - . only "
                             "that begins and ends with a letter or digit", tenant)};
}

// The lowest that has all that is used: 0.3.0, but for names that begin with a digit.
std::string_view version_for(const std::string& device) { return is_digit(device.front()) ? "0.5.0" : "0.3.0"; }

// Where the provider and its container.driver are: in the build tree that this program is in, or installed.
struct Files {
    fs::path provider, driver;
};

Files files() {
    const auto built = (fs::read_symlink("/proc/self/exe").parent_path() / "../../provider").lexically_normal();
    if (fs::exists(built / "container.driver")) return {built, built / "container.driver"};
    return {config::provider_dir, config::container_driver};
}

Json mount(const std::string& host, const std::string& container, std::initializer_list<const char*> options) {
    return Json{{"hostPath", host}, {"containerPath", container}, {"options", options}};
}

// The provider, and its stub for each private ABI, whichever the image's libibverbs has. Single files, since the directory on the node has the
// real providers in it as well. Of the tenant's directory only the ledgers are writable: root in a container is root.
Result<Json> mounts(const std::string& here) {
    Json list = Json::array();
    const auto add = [&](const fs::path& host, const std::string& container) -> Result<void> {
        std::error_code error;
        const auto real = fs::canonical(host, error);
        if (error) return Error{fmt::format("{} is not there; install rdmaquota on this node", host.string())};
        list.push_back(mount(real, container, {"bind", "ro", "nosuid", "nodev"}));
        return {};
    };
    const auto [provider, driver] = files();
    std::vector<std::string> suffixes{".so"};
    for (const auto* pabi : config::provider_pabis) suffixes.push_back(fmt::format("-rdmav{}.so", pabi));
    for (const auto& suffix : suffixes) {
        if (auto added = add(provider / ("librdmaquota" + suffix), config::container_provider + suffix); !added)
            return Error{added.error()};
    }
    if (auto added = add(driver, "/etc/libibverbs.d/rdmaquota.driver"); !added)
        return Error{added.error()};
    const std::string seen = system_directory;
    const TenantPlace place{"", here};
    if (place.is_hidden()) return Error{fmt::format("only root sees {}; run as root", here)};
    if (!place.has_ledger()) return Error{fmt::format("{} has no ledger; run 'rdmaquota reload'", here)};
    list.push_back(mount(here, seen, {"bind", "ro", "nosuid", "nodev", "noexec"}));
    list.push_back(mount(here + "/ledgers", seen + "/ledgers", {"bind", "rw", "nosuid", "nodev", "noexec"}));
    return list;
}

// Run by the runtime, on the node, when the container has its cgroup and before its program starts.
Json hook(const std::string& tenant, const std::string& directory) {
    const auto program = fs::read_symlink("/proc/self/exe").string();
    Json arguments{"rdmaquota", "tenant", "bind", tenant};
    if (directory != system_directory) arguments.insert(arguments.end(), {"--dir", directory});
    return Json{{"hookName", "createRuntime"}, {"path", program}, {"args", arguments}, {"timeout", 30}};
}

}  // namespace

Result<Json> container_specification(const std::string& tenant, const std::string& quota_directory) {
    const auto directory = fs::absolute(quota_directory).lexically_normal().string();
    if (is_own_directory(directory))
        return Error{fmt::format("{} belongs to one tenant; write specifications on the node", directory)};
    const auto policy = running_policy(directory);
    if (!policy) return Error{policy.error()};
    if (auto usable = check_for_container(*policy, tenant); !usable) return Error{usable.error()};
    const auto device = device_name(tenant);
    if (!device) return Error{device.error()};
    const auto list = mounts(here_path(directory, tenant));
    if (!list) return Error{list.error()};
    const Json edits{{"mounts", *list}, {"hooks", Json::array({hook(tenant, directory)})}};
    return Json{{"cdiVersion", version_for(*device)},
                {"kind", container_device_kind},
                {"devices", Json::array({Json{{"name", *device}, {"containerEdits", edits}}})}};
}

}  // namespace rdmaquota
