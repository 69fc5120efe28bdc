#include "provider/host/subject.hpp"

#include <cerrno>

#include <fcntl.h>
#include <unistd.h>

#include "policy/subject_text.hpp"
#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {
namespace {

constexpr std::size_t chunk = 4096;          // most texts are shorter
constexpr std::size_t longest_text = 65536;  // a cgroup path of 4096 bytes in each of 13 hierarchies of cgroup v1

// Reads into text[size…]; the number of bytes, 0 at the end and where reading fails.
std::size_t read_chunk(int fd, std::string& text, std::size_t size) {
    text.resize(size + chunk);
    ssize_t bytes = 0;
    do bytes = ::read(fd, text.data() + size, chunk);
    while (bytes < 0 && errno == EINTR);
    return bytes > 0 ? static_cast<std::size_t>(bytes) : 0;
}

// At most `longest_text` bytes; none where the file cannot be opened.
std::optional<std::string> read_text(const std::string& path) {
    std::string text;
    text.reserve(chunk);
    const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return std::nullopt;
    std::size_t size = 0;
    try {
        while (size < longest_text)
            if (const auto bytes = read_chunk(fd, text, size))
                size += bytes;
            else
                break;
    } catch (...) {
        close(fd);
        throw;
    }
    close(fd);
    text.resize(size);
    return text;
}

std::optional<std::uint32_t> translate(const std::optional<std::string>& map, std::uint32_t id) {
    return map ? id_outside(*map, id) : id;
}

// The supplementary groups in this process's namespace.
std::vector<gid_t> own_groups() {
    for (;;) {
        const int count = getgroups(0, nullptr);
        std::vector<gid_t> groups(count > 0 ? static_cast<std::size_t>(count) : 0);
        if (groups.empty()) return groups;
        const int filled = getgroups(count, groups.data());
        if (filled < 0 && errno == EINVAL) continue;  // another thread has added some
        groups.resize(filled > 0 ? static_cast<std::size_t>(filled) : 0);
        return groups;
    }
}

}  // namespace

OwnSubject::OwnSubject(const NodePolicy& policy, const std::string& proc) {
    const KeepErrno keep;
    if (policy.asks_for_ids()) read_ids(proc);
    if (policy.asks_for_cgroup()) read_cgroup(proc);
}

void OwnSubject::read_ids(const std::string& proc) {
    user_ = translate(read_text(proc + "/uid_map"), geteuid());
    const auto map = read_text(proc + "/gid_map");
    group_ = translate(map, getegid());
    for (const auto group : own_groups())
        if (const auto outside = translate(map, group)) groups_.push_back(*outside);
}

void OwnSubject::read_cgroup(const std::string& proc) {
    if (const auto text = read_text(proc + "/cgroup")) cgroup_ = cgroup_path(*text);
}

}  // namespace rdmaquota::provider
