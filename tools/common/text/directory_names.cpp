#include "tools/common/text/directory_names.hpp"

#include <cerrno>
#include <memory>
#include <string_view>

#include <dirent.h>

namespace rdmaquota {
namespace {

struct CloseDirectory {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};

}  // namespace

std::vector<std::string> directory_names(const std::string& path, int& error) {
    std::vector<std::string> names;
    const std::unique_ptr<DIR, CloseDirectory> directory(::opendir(path.c_str()));
    error = directory ? 0 : errno;
    while (directory) {
        errno = 0;  // readdir returns null at the end too
        const auto* entry = ::readdir(directory.get());
        error = errno;
        if (entry == nullptr) break;
        if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
    }
    return names;
}

std::vector<std::string> directory_names(const std::string& path) {
    int ignored = 0;
    return directory_names(path, ignored);
}

}  // namespace rdmaquota
