// Whether two names or descriptors are of one file.
#pragma once

#include <string>

#include <sys/stat.h>

namespace rdmaquota {

inline bool same_file(const struct stat& a, const struct stat& b) noexcept {
    return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// By paths, following links; false when one of them is not there.
inline bool same_file(const std::string& a, const std::string& b) noexcept {
    struct stat first {
    }, second{};
    return ::stat(a.c_str(), &first) == 0 && ::stat(b.c_str(), &second) == 0 && same_file(first, second);
}

}  // namespace rdmaquota
