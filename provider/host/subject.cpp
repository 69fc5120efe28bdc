#include "provider/host/subject.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include "policy/subject_text.hpp"
#include "provider/host/keep_errno.hpp"
#include "provider/host/read_text.hpp"

namespace rdmaquota::provider {
namespace {

constexpr ino_t initial_user_namespace = 0xEFFFFFFD;  // its inode (PROC_USER_INIT_INO, include/linux/proc_ns.h)

// Where ids mean the same inside and outside.
bool in_initial_namespace(const std::string& proc) {
    struct stat status {};
    return stat((proc + "/ns/user").c_str(), &status) == 0 && status.st_ino == initial_user_namespace;
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
    if (in_initial_namespace(proc)) {
        user_ = geteuid();
        group_ = getegid();
        for (const auto group : own_groups()) groups_.push_back(group);
        return;
    }
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
