#include "provider/host/read_text.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

namespace rdmaquota::provider {
namespace {

constexpr std::size_t chunk = 2000;          // most texts are shorter; with the arena's header it fits 2 KiB
constexpr std::size_t longest_text = 65536;  // a cgroup path of 4096 bytes in each of 13 hierarchies of cgroup v1

// Appends the next chunk of the file, in place, since the stack may be small. False at the end and where reading fails.
bool append_chunk(int fd, std::string& text) {
    const auto before = text.size();
    text.resize(before + chunk);
    ssize_t bytes = 0;
    do bytes = ::read(fd, text.data() + before, chunk);
    while (bytes < 0 && errno == EINTR);
    text.resize(before + static_cast<std::size_t>(bytes > 0 ? bytes : 0));
    return bytes > 0;
}

}  // namespace

std::optional<std::string> read_text(const std::string& path) {
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return std::nullopt;
    std::string text;
    try {
        while (text.size() < longest_text && append_chunk(fd, text)) {}
    } catch (...) {
        close(fd);
        throw;
    }
    close(fd);
    return text;
}

}  // namespace rdmaquota::provider
