#include "tools/common/guard_pins.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <thread>

#include <fmt/core.h>
#include <linux/magic.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>

namespace rdmaquota {
namespace {

constexpr const char* mount_point = "/sys/fs/bpf";
// The kernel detaches a program some time after its link is gone.
constexpr std::chrono::milliseconds time_to_detach{100};

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

}  // namespace

std::vector<std::string> GuardPins::all() {
    std::vector<std::string> found;
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(kept, error)) found.push_back(entry.path());
    return found;
}

Result<std::string> GuardPins::fresh() {
    if (auto done = have_file_system(); !done) return Error{done.error()};
    for (unsigned number = 1;; ++number) {
        auto path = fmt::format("{}/{}", kept, number);
        if (mkdir(path.c_str(), 0700) == 0) return path;
        if (errno != EEXIST) return failed(path);
    }
}

std::string GuardPins::look(std::size_t number) { return fmt::format("look-{}", number); }
std::string GuardPins::rest(std::size_t number) { return fmt::format("rest-{}", number); }

Result<void> GuardPins::remove(const std::string& directory) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(directory, error))
        if (entry.path().filename().string().starts_with("rest")) std::filesystem::remove(entry.path(), error);
    std::this_thread::sleep_for(time_to_detach);
    std::filesystem::remove_all(directory, error);
    if (error) return Error{fmt::format("{}: {}", directory, error.message())};
    return {};
}

}  // namespace rdmaquota
