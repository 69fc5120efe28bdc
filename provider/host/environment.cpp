#include "provider/host/environment.hpp"

#include <cerrno>
#include <climits>
#include <cstdlib>

#include <unistd.h>

#include "shm/paths.hpp"

namespace rdmaquota::provider {
namespace {

const std::string& starting_directory() {
    static const auto* const directory = [] {
        std::string here(PATH_MAX, '\0');  // not on the stack, which may have 16 KiB
        return new std::string(getcwd(here.data(), here.size()) ? here.c_str() : ".");
    }();
    return *directory;
}

bool may_exist(const char* directory) noexcept { return access(directory, F_OK) == 0 || errno != ENOENT; }

std::string own_directory() {
    const char* own = secure_getenv("RDMAQUOTA_DIR");
    if (!own || !*own || *own == '/') return own ? own : "";
    return starting_directory() + '/' + own;
}

}  // namespace

const Tightening& environment() {
    static const auto* const tightening =
        new Tightening(read_environment([](const char* name) -> const char* { return secure_getenv(name); }));
    return *tightening;
}

std::vector<QuotaDirectory> quota_directories() {
    std::vector<QuotaDirectory> result;
    const auto own = own_directory();
    // Where nothing was ever set up, as in a container's image that has the provider, there is nothing to tell programs.
    if (may_exist(system_directory) || access(node_policy_path(second_directory).c_str(), F_OK) == 0)
        result.push_back({system_directory, second_directory});
    if (!own.empty() && !is_node_directory(own)) result.push_back({own});
    return result;
}

}  // namespace rdmaquota::provider
