#include "provider/host/environment.hpp"

#include <climits>
#include <cstdlib>

#include <unistd.h>

#include "shm/paths.hpp"

namespace rdmaquota::provider {
namespace {

const std::string& starting_directory() {
    static const auto* const directory = [] {
        char here[PATH_MAX];
        return new std::string(getcwd(here, sizeof here) ? here : ".");
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
    // With a directory of its own, a process on a node without an installed policy needs no other.
    if (!has_own || access(system_directory, F_OK) == 0) result.emplace_back(system_directory);
    if (has_own) result.emplace_back(own);
    return result;
}

}  // namespace rdmaquota::provider
