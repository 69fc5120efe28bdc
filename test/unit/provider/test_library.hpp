// The libraries that the tests load, which lie beside them in the build.
#pragma once

#include <filesystem>

inline std::filesystem::path test_library(const char* name) {
    return std::filesystem::read_symlink("/proc/self/exe").parent_path() / "provider" / name;
}
