#include "tools/rdmaquota/doctor/units.hpp"

#include <algorithm>
#include <filesystem>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

bool exists(const std::string& path) {
    std::error_code error;
    return fs::exists(fs::symlink_status(path, error));
}

bool is_installed(const std::string& root, const std::string& unit) {
    const auto places = {"/etc/systemd/system/", "/usr/local/lib/systemd/system/", "/usr/lib/systemd/system/",
                         "/lib/systemd/system/"};
    return std::any_of(places.begin(), places.end(), [&](const char* place) { return exists(root + place + unit); });
}

// Whether a target wants it, whichever: an administrator may choose.
bool is_enabled(const std::string& root, const std::string& unit) {
    const auto targets = root + "/etc/systemd/system/";
    const auto names = directory_names(targets);
    return std::any_of(names.begin(), names.end(), [&](const std::string& name) {
        return (name.ends_with(".wants") || name.ends_with(".requires")) && exists(targets + name + "/" + unit);
    });
}

void examine_sidecar(Findings& findings, const std::string& directory, const std::string& root) {
    const auto say = [&](Level level, const char* text) { findings.push_back({level, "sidecar", text}); };
    if (!is_installed(root, "rdmaquotad.service")) return;
    const bool answers = static_cast<bool>(ask_sidecar(directory, Json{{"request", "guard"}}));
    if (!answers && sidecar_listens(directory))
        say(Level::warning, "it runs and does not answer now, for instance since it loads the guard; try again in ten seconds");
    else if (!answers)
        say(Level::warning, "rdmaquotad is not running: shares do not move, bypasses are not reported, history is not kept; "
                            "systemctl start rdmaquotad");
    else if (!is_enabled(root, "rdmaquotad.service"))
        say(Level::warning, "it runs, but will not after the next boot: systemctl enable rdmaquotad");
    else
        say(Level::ok, "it runs, and will after the next boot");
}

}  // namespace

void examine_units(Findings& findings, const std::string& directory, const std::string& root) {
    if (!exists(root + "/run/systemd/system") || (root.empty() && directory != system_directory)) return;
    if (is_installed(root, "rdmaquota.service")) {
        if (is_enabled(root, "rdmaquota.service"))
            findings.push_back({Level::ok, "boot", "the policy is put in force at the next boot"});
        else
            findings.push_back({Level::warning, "boot", "no policy is in force after the next boot: systemctl enable rdmaquota"});
    }
    examine_sidecar(findings, directory, root);
}

}  // namespace rdmaquota
