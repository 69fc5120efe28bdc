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

std::vector<std::string> quota_directories() {
    std::vector<std::string> result;
    const auto own = own_directory();
    const bool has_own = !own.empty() && own != system_directory;
    // Where nothing was ever set up, as in a container's image that has the provider, there is nothing to tell programs.
    if (access(system_directory, F_OK) == 0 || errno != ENOENT) result.emplace_back(system_directory);
    if (has_own) result.emplace_back(own);
    return result;
}

}  // namespace rdmaquota::provider
