#include "tools/common/process/verbs_copies.hpp"

#include <algorithm>
#include <set>
#include <sstream>
#include <string_view>

#include "tools/common/process/elf_file.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t most_files = 512;  // that are read of one process

// The file of a line of /proc/PID/maps that is code; empty for other lines.
std::string code_file(const std::string& line) {
    const auto path = line.find('/');
    return path != line.npos && line.find(" r-xp ") < path ? line.substr(path) : std::string();
}

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
        const auto path = code_file(line);
        if (path.empty() || !seen.insert(path).second) continue;
        if (!pabi_of_file(path).empty()) copies.push_back(path);
    }
    return copies;
}

std::string named_verbs_copy(const std::string& maps) {
    std::istringstream lines(maps);
    for (std::string line; std::getline(lines, line);)
        if (const auto path = code_file(line); path.find("ibverb", path.rfind('/') + 1) != path.npos) return path;
    return {};
}

}  // namespace rdmaquota
