#include "tools/common/process/verbs_copies.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "tools/common/process/elf_file.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t most_files = 512;  // that are read of one process

}  // namespace

std::string pabi_of_file(const std::string& path) {
    constexpr std::string_view node = "IBVERBS_PRIVATE_";
    const auto file = read_elf(path);
    if (!file) return {};
    for (const auto& version : file->versions)
        if (version.starts_with(node)) return version.substr(node.size());
    return {};
}

std::vector<std::string> verbs_copies(const std::string& maps) {
    std::vector<std::string> copies;
    std::set<std::string> seen;
    std::istringstream lines(maps);
    for (std::string line; std::getline(lines, line) && seen.size() < most_files;) {
        const auto path = line.find('/');
        const bool is_code = line.find(" r-xp ") < path;
        if (path == line.npos || !is_code || !seen.insert(line.substr(path)).second) continue;
        if (!pabi_of_file(line.substr(path)).empty()) copies.push_back(line.substr(path));
    }
    return copies;
}

}  // namespace rdmaquota
