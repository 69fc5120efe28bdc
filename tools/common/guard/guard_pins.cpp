#include "tools/common/guard/guard_pins.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "tools/common/text/directory_names.hpp"
#include "tools/common/guard/bpf_map.hpp"

namespace rdmaquota {
namespace {

constexpr const char* mount_point = "/sys/fs/bpf";
constexpr const char* kept = "/sys/fs/bpf/rdmaquota";

Error failed(const std::string& path) { return {fmt::format("{}: {}", path, std::strerror(errno))}; }

Result<void> have_file_system() {
    struct statfs status {};
    if (statfs(mount_point, &status) != 0) return failed(mount_point);
    if (status.f_type != BPF_FS_MAGIC && mount("bpf", mount_point, "bpf", MS_NOSUID | MS_NODEV | MS_NOEXEC, "mode=700") != 0)
        return failed(mount_point);
    if (mkdir(kept, 0700) != 0 && errno != EEXIST) return failed(kept);
    return {};
}

std::string fresh_directory() { return fmt::format("{}/new", kept); }

// Whatever is pinned there; a guard in it must be off.
Result<void> forget(const std::string& directory) {
    std::error_code error;
    std::filesystem::remove_all(directory, error);
    if (error) return Error{fmt::format("{}: {}", directory, error.message())};
    ::rmdir(kept);  // once it is empty
    return {};
}

}  // namespace

std::vector<std::string> GuardPins::all() {
    std::vector<std::string> found;
    for (const auto& name : directory_names(kept)) found.push_back(fmt::format("{}/{}", kept, name));
    return found;
}

bool GuardPins::visible() { return ::access(kept, R_OK | X_OK) == 0 || errno == ENOENT; }

std::string GuardPins::of_version(const std::string& version) { return fmt::format("{}/{}", kept, version); }

Result<std::string> GuardPins::fresh() {
    const auto path = fresh_directory();
    if (auto removed = remove(path); !removed) return Error{removed.error()};
    if (auto done = have_file_system(); !done) return Error{done.error()};
    if (mkdir(path.c_str(), 0700) != 0) return failed(path);
    return path;
}

Result<void> GuardPins::publish(const std::string& version) {
    const auto path = of_version(version), before = of_version("old");
    if (access(path.c_str(), F_OK) == 0) {
        if (auto removed = remove(before); !removed) return removed;
        if (std::rename(path.c_str(), before.c_str()) != 0) return failed(path);
    }
    if (std::rename(fresh_directory().c_str(), path.c_str()) != 0) return failed(path);
    return {};
}

// As it is: its mode is that of the guard which this process leads.
void GuardPins::discard_fresh() { (void)forget(fresh_directory()); }

// The file system of BPF allows no dot in a name.
std::string GuardPins::map(std::string name) {
    std::replace(name.begin(), name.end(), '.', '_');
    return "map_" + name;
}
std::string GuardPins::link(const std::string& program) { return "link_" + program; }

// A directory without it has no links: they are pinned after it.
Result<void> GuardPins::turn_off(const std::string& directory) {
    const auto path = fmt::format("{}/{}", directory, map(mode_map));
    const int fd = bpf::open_pinned(path);
    if (fd < 0) return errno == ENOENT ? Result<void>() : failed(path);
    const std::uint32_t key = 0, off = 0;
    std::vector<char> value(std::max<std::size_t>(bpf::sizes(fd).value, sizeof off));
    const bool read = bpf::get(fd, &key, value.data());
    std::memcpy(value.data(), &off, sizeof off);
    const bool done = read && bpf::put(fd, &key, value.data());
    const auto error = failed(path);
    close(fd);
    if (!done) return error;
    return {};
}

Result<void> GuardPins::remove(const std::string& directory) {
    if (auto off = turn_off(directory); !off) return off;
    return forget(directory);
}

Result<void> GuardPins::remove_all() {
    for (const auto& directory : all())
        if (auto removed = remove(directory); !removed) return removed;
    ::rmdir(kept);
    return {};
}

}  // namespace rdmaquota
