#include "tools/rdmaquota/doctor/verbs_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string_view>

#include <fmt/core.h>

#include "tools/common/config.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/process/verbs_copies.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/text/file_text.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

constexpr off_t most_bytes = 64 << 20;  // of a file that is searched
constexpr int deepest = 40;             // directories, one in the other
constexpr const char* registration = "rdmaquota.driver";
constexpr const char* provider = "librdmaquota.so";

// The path in the text that ends with `part`, or goes on with it; empty where there is none.
std::string path_before(std::string_view text, std::string_view part, std::size_t kept) {
    const auto found = text.find(part);
    if (found == text.npos) return {};
    const auto begin = text.rfind('\0', found) + 1;
    return text[begin] == '/' ? std::string(text.substr(begin, found + kept - begin)) : std::string();
}

std::string stub_name(const VerbsFile& file) { return fmt::format("librdmaquota-rdmav{}.so", file.pabi); }

bool is_inside(const std::string& path, const std::string& directory) {
    return !path.empty() && path.starts_with(directory.ends_with('/') ? directory : directory + "/");
}

std::string resolved(const std::string& path) {
    std::error_code error;
    const auto real = fs::weakly_canonical(path, error);
    return error ? path : real.string();
}

void find_below(const std::string& directory, int depth, std::vector<VerbsFile>& found) {
    for (const auto& name : directory_names(directory)) {
        const auto path = directory + "/" + name;
        struct stat status {};
        if (::lstat(path.c_str(), &status) != 0) continue;
        if (S_ISDIR(status.st_mode) && depth < deepest) find_below(path, depth + 1, found);
        if (!S_ISREG(status.st_mode) || name.find("ibverb") == name.npos) continue;
        if (auto file = read_verbs_file(path)) found.push_back(std::move(*file));
    }
}

// The file that libibverbs loads for a driver of this name.
std::string driver_file(const VerbsFile& file, const std::string& name) {
    const auto suffix = fmt::format("-rdmav{}.so", file.pabi);
    return name.starts_with('/') ? name + suffix : fmt::format("{}/lib{}{}", file.providers, name, suffix);
}

bool is_ours(const std::string& driver) {
    const auto name = driver.substr(driver.rfind('/') + 1);
    return name == "rdmaquota" || name == "librdmaquota";
}

Error cannot(const char* what, const std::string& path) { return {fmt::format("cannot {} {}: {}", what, path, std::strerror(errno))}; }

Result<void> remove(const std::string& path) {
    if (::unlink(path.c_str()) == 0 || errno == ENOENT || errno == ENOTDIR) return {};
    return cannot("remove", path);
}

// A link, so that an upgrade of the node's provider is one of this libibverbs'.
Result<void> link_provider(const VerbsFile& file) {
    const auto link = file.providers + "/" + provider;
    if (const auto removed = remove(link); !removed) return removed;
    if (::symlink(fmt::format("{}/{}", config::provider_dir, provider).c_str(), link.c_str()) == 0) return {};
    return cannot("create", link);
}

}  // namespace

std::vector<std::string> driver_names(const std::string& configuration) {
    std::vector<std::string> names;
    for (const auto& file : directory_names(configuration)) {
        std::ifstream stream(fmt::format("{}/{}", configuration, file));
        for (std::string line; std::getline(stream, line);) {
            std::istringstream words(line);
            std::string directive, name;
            if (words >> directive >> name && directive == "driver") names.push_back(name);
        }
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

std::optional<VerbsFile> read_verbs_file(const std::string& path) {
    constexpr std::string_view configuration = "/libibverbs.d", drivers = "/lib%s-rdmav";
    VerbsFile file{path, pabi_of_file(path), {}, {}};
    struct stat status {};
    if (file.pabi.empty() || ::stat(path.c_str(), &status) != 0 || status.st_size > most_bytes) return std::nullopt;
    const auto text = file_text(path);
    file.configuration = path_before(text, configuration, configuration.size());
    file.providers = path_before(text, drivers, 0);
    return file;
}

std::vector<VerbsFile> find_verbs_files(const std::vector<std::string>& directories) {
    std::vector<VerbsFile> found;
    for (const auto& directory : directories) find_below(resolved(directory), 0, found);
    std::sort(found.begin(), found.end(), [](const auto& a, const auto& b) { return a.path < b.path; });
    return found;
}

std::string registered_by(const VerbsFile& file) {
    if (file.configuration.empty()) return {};
    for (const auto& name : driver_names(file.configuration)) {
        if (!is_ours(name) || ::access(driver_file(file, name).c_str(), R_OK) != 0) continue;
        return fmt::format("{}/{}", file.configuration, registration);
    }
    return {};
}

std::string obstacle(const VerbsFile& file, const std::string& prefix) {
    if (::access(fmt::format("{}/{}", config::provider_dir, stub_name(file)).c_str(), R_OK) != 0)
        return fmt::format("this node has no provider for its private ABI {}", file.pabi);
    if (file.configuration.empty() || file.providers.empty()) return "it does not tell where it reads its configuration";
    for (const auto& directory : {file.configuration, file.providers})
        if (!is_inside(resolved(directory), prefix)) return fmt::format("it reads {}, which is not below {}", directory, prefix);
    return {};
}

std::string prefix_of(const VerbsFile& file) {
    for (auto prefix = fs::path(resolved(file.path)).parent_path(); prefix.has_relative_path(); prefix = prefix.parent_path())
        if (obstacle(file, prefix).empty()) return prefix;
    return {};
}

bool has_public_library(const VerbsFile& file) {
    const auto names = directory_names(fs::path(file.path).parent_path());
    return std::any_of(names.begin(), names.end(), [](const std::string& name) {
        return std::any_of(public_providers.begin(), public_providers.end(),
                           [&](auto provider) { return name.starts_with(fmt::format("lib{}", provider)); });
    });
}

Result<void> register_provider(const VerbsFile& file) {
    std::error_code error;
    for (const auto& directory : {file.providers, file.configuration}) {
        fs::create_directories(directory, error);
        if (error) return Error{fmt::format("cannot create {}: {}", directory, error.message())};
    }
    const auto stub = file_text(fmt::format("{}/{}", config::provider_dir, stub_name(file)));
    if (const auto written = replace_file(fmt::format("{}/{}", file.providers, stub_name(file)), stub, 0755); !written) return written;
    if (const auto linked = link_provider(file); !linked) return linked;
    return replace_file(fmt::format("{}/{}", file.configuration, registration), "driver rdmaquota\n");
}

Result<void> unregister_provider(const VerbsFile& file) {
    for (const auto& path : {fmt::format("{}/{}", file.configuration, registration),
                             fmt::format("{}/{}", file.providers, stub_name(file)), fmt::format("{}/{}", file.providers, provider)})
        if (const auto removed = remove(path); !removed) return removed;
    return {};
}

}  // namespace rdmaquota
