#include "tools/rdmaquota/doctor/compatibility.hpp"

#include <algorithm>
#include <array>
#include <cstdio>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

struct Library {
    std::string_view pabi, release;
};
constexpr std::array<Library, 3> tested_libraries{{{"34", "44"}, {"34", "56"}, {"65", "65"}}};
constexpr std::array<std::string_view, 3> tested_kernels{"6.1", "6.12", "7.2"};

// "44" of "/usr/lib/libibverbs.so.1.14.44.0"; empty where the name does not have it.
std::string_view release_in(std::string_view file) noexcept {
    for (int dots = 0; dots < 2; ++dots) {
        const auto dot = file.rfind('.');
        if (dot == file.npos) return "";
        const auto part = file.substr(dot + 1);
        if (part.empty() || part.find_first_not_of("0123456789") != part.npos) return "";
        if (dots == 1) return part;
        file.remove_suffix(part.size() + 1);
    }
    return "";
}

std::string_view without_patch(std::string_view kernel) noexcept {
    return kernel.substr(0, kernel.find_first_not_of("0123456789", kernel.find('.') + 1));
}

std::string guard_words(std::string_view kernel) {
    unsigned major = 0, minor = 0;
    if (std::sscanf(std::string(kernel).c_str(), "%u.%u", &major, &minor) != 2) return "not known";
    if (major < 5 || (major == 5 && minor < 11)) return "too old for the guard";
    const bool tested = std::find(tested_kernels.begin(), tested_kernels.end(), kernel) != tested_kernels.end();
    return tested ? "tested" : "expected to work";
}

}  // namespace

std::string compatibility(std::string_view file, std::string_view pabi, std::string_view kernel) {
    const auto release = release_in(file);
    const bool tested = std::any_of(tested_libraries.begin(), tested_libraries.end(),
                                    [&](const Library& one) { return one.pabi == pabi && one.release == release; });
    const auto library = release.empty() ? std::string("this libibverbs") : fmt::format("rdma-core {}", release);
    const auto short_kernel = without_patch(kernel);
    return fmt::format("{}: {}; kernel {}: {} (docs/compatibility.md)", library, tested ? "tested" : "expected to work", short_kernel,
                       guard_words(short_kernel));
}

}  // namespace rdmaquota
