#include "provider/adoption/drivers.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
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

// A line "driver NAME"; others mean nothing.
void add_from_line(std::vector<std::string>& names, std::string_view line) {
    constexpr std::string_view blanks = " \t\r\v\f";
    const auto word = [&] {
        line.remove_prefix(std::min(line.find_first_not_of(blanks), line.size()));
        const auto found = line.substr(0, line.find_first_of(blanks));
        line.remove_prefix(found.size());
        return found;
    };
    if (word() == "driver") add(names, std::string(word()));
}

// Of a regular file: what it has less than was asked for is its end.
std::string text_of(int fd) {
    constexpr std::size_t most = 65536;  // larger files are no drivers' files
    std::string text;
    char part[1024];
    ssize_t size = sizeof part;
    while (size == sizeof part && text.size() < most) {
        size = read(fd, part, sizeof part);
        if (size > 0) text.append(part, static_cast<std::size_t>(size));
    }
    return text;
}

void add_from_file(std::vector<std::string>& names, int directory, const char* name) {
    const int fd = openat(directory, name, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) return;
    const auto text = text_of(fd);
    close(fd);
    for (std::string_view rest = text; !rest.empty();) {
        const auto line = rest.substr(0, rest.find('\n'));
        add_from_line(names, line);
        rest.remove_prefix(std::min(line.size() + 1, rest.size()));
    }
}

// A link, or what the file system does not tell of, may lead to a regular file.
bool may_be_regular(const dirent& entry) noexcept {
    return entry.d_type == DT_REG || entry.d_type == DT_LNK || entry.d_type == DT_UNKNOWN;
}

}  // namespace

std::vector<std::string> driver_names(const std::string& configuration) {
    std::vector<std::string> names;
    add_from_environment(names);
    DIR* directory = opendir(configuration.c_str());
    if (!directory) return names;
    while (const dirent* entry = readdir(directory))
        if (may_be_regular(*entry)) add_from_file(names, dirfd(directory), entry->d_name);
    closedir(directory);
    return names;
}

std::string driver_path(const std::string& name, unsigned pabi, const std::string& directory) {
    if (name.front() == '/') return fmt::format("{}-rdmav{}.so", name, pabi);
    return fmt::format("{}/lib{}-rdmav{}.so", directory, name, pabi);
}

void* load_driver(const std::string& name, unsigned pabi, const std::string& directory) {
    const auto path = driver_path(name, pabi, directory);
    void* handle = dlopen(path.c_str(), RTLD_NOW);
    return handle || name.front() == '/' ? handle : dlopen(path.c_str() + path.rfind('/') + 1, RTLD_NOW);
}

}  // namespace rdmaquota::provider
