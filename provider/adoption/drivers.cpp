#include "provider/adoption/drivers.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include <dirent.h>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

namespace rdmaquota::provider {
namespace {

void add(std::vector<std::string>& names, std::string name) {
    const auto last = name.substr(name.rfind('/') + 1);
    const bool own = last == "rdmaquota" || last == "librdmaquota";
    if (!name.empty() && !own && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
}

void add_from_environment(std::vector<std::string>& names) {
    if (getuid() != geteuid()) return;
    const char* list = std::getenv("RDMAV_DRIVERS");
    if (!list) list = std::getenv("IBV_DRIVERS");
    std::string_view rest = list ? list : "";
    while (!rest.empty()) {
        const auto end = std::min(rest.find_first_of(":;"), rest.size());
        add(names, std::string(rest.substr(0, end)));
        rest.remove_prefix(std::min(end + 1, rest.size()));
    }
}

// C files instead of C++ streams, which would set up locales in every host program.
void add_from_file(std::vector<std::string>& names, const std::string& path) {
    FILE* file = std::fopen(path.c_str(), "re");
    if (!file) return;
    char line[1024];
    char directive[32];
    char name[512];
    while (std::fgets(line, sizeof line, file))
        if (std::sscanf(line, "%31s %511s", directive, name) == 2 && std::string_view(directive) == "driver")
            add(names, name);
    std::fclose(file);
}

bool is_regular_file(const std::string& path) {
    struct stat status {};
    return stat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode);
}

void* open_library(const std::string& path) { return dlopen(path.c_str(), RTLD_NOW); }

}  // namespace

std::vector<std::string> driver_names() {
    std::vector<std::string> names;
    add_from_environment(names);
    DIR* directory = opendir(RDMAQUOTA_DRIVER_DIR);
    if (!directory) return names;
    while (const dirent* entry = readdir(directory)) {
        const auto path = fmt::format("{}/{}", RDMAQUOTA_DRIVER_DIR, entry->d_name);
        if (is_regular_file(path)) add_from_file(names, path);
    }
    closedir(directory);
    return names;
}

void* load_driver(const std::string& name, unsigned pabi) {
    const auto suffix = fmt::format("-rdmav{}.so", pabi);
    if (name.front() == '/') return open_library(name + suffix);
    if (void* handle = open_library(fmt::format("{}/lib{}{}", RDMAQUOTA_PROVIDER_DIR, name, suffix))) return handle;
    return open_library(fmt::format("lib{}{}", name, suffix));
}

}  // namespace rdmaquota::provider
