#include "tools/common/text/file_text.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/write_all.hpp"

namespace rdmaquota {

// Not by std::istreambuf_iterator: it throws when a file that could be opened cannot be read.
std::string file_text(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

std::string first_line(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    std::string line;
    std::getline(file, line);
    return line;
}

Error cannot_write(const std::string& path) {
    return {fmt::format("cannot write {}: {}{}", path, std::strerror(errno), ::geteuid() == 0 ? "" : "; run as root")};
}

Result<void> replace_file(const std::string& path, std::string_view text, mode_t rights) {
    const auto temporary = fmt::format("{}.{}.tmp", path, ::getpid());
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0) return cannot_write(temporary);
    const bool written = ::fchmod(fd, rights) == 0 && write_all(fd, text);
    const int reason = errno;
    ::close(fd);
    errno = reason;
    if (written && std::rename(temporary.c_str(), path.c_str()) == 0) return {};
    const auto error = cannot_write(path);
    ::unlink(temporary.c_str());
    return error;
}

}  // namespace rdmaquota
