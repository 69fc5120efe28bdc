#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>

#include <fmt/core.h>

#include "policy/file/edit.hpp"
#include "policy/file/limit_place.hpp"
#include "policy/file/policy_file.hpp"
#include "policy/file/toml.hpp"
#include "policy/write_all.hpp"

namespace rdmaquota {
namespace {

void sync_directory_of(const std::string& path) {
    const auto directory = path.substr(0, path.rfind('/') + 1);
    if (const int fd = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); fd >= 0) {
        ::fsync(fd);
        ::close(fd);
    }
}

// Where `fragment` sets the limit `key`, as "FILE:LINE:COL: ", or "".
Result<std::string> overriding_location(const std::string& fragment, const LimitKey& key) {
    const auto text = read_text(fragment);
    if (!text) return Error{text.error()};
    const auto root = parse_toml(text.value(), fragment);
    if (!root) return Error{root.error()};
    const auto* table = find_table(root.value(), key);
    const auto* node = table == nullptr ? nullptr : table->get(info(key.resource).name);
    return node == nullptr ? "" : location(fragment, node->source().begin);
}

Result<void> check_not_overridden(const std::string& path, const std::vector<LimitChange>& changes) {
    const auto fragments = policy_fragments(path);
    if (!fragments) return Error{fragments.error()};
    for (const auto& fragment : fragments.value())
        for (const auto& change : changes) {
            const auto found = overriding_location(fragment, change.key);
            if (!found) return Error{found.error()};
            if (!found.value().empty())
                return Error{fmt::format("{}{} for '{}' is set here and wins over {}; change it here, then reload",
                                         found.value(), info(change.key.resource).name, change.key.device, path)};
        }
    return {};
}

}  // namespace

// The file that replaces the policy; removed again unless it was put in place.
class PolicyEdit::Replacement {
public:
    explicit Replacement(std::string target) : target_(std::move(target)), path_(temporary_name(target_)) {
        fd_ = ::mkostemp(path_.data(), O_CLOEXEC);
    }
    Replacement(const Replacement&) = delete;
    Replacement& operator=(const Replacement&) = delete;
    ~Replacement() {
        if (fd_ < 0) return;
        ::close(fd_);
        if (!placed_) ::unlink(path_.c_str());
    }

    bool write(const std::string& text) const { return like_target() && write_all(fd_, text) && ::fsync(fd_) == 0; }

    bool put_in_place() {
        placed_ = ::rename(path_.c_str(), target_.c_str()) == 0;
        if (placed_) sync_directory_of(target_);
        return placed_;
    }

    Error failure() const {
        return {fmt::format("{}: cannot replace: {}; the file is unchanged", target_, std::strerror(errno))};
    }

private:
    // Hidden and not ending in .toml: conf.d must never take it for a policy.
    static std::string temporary_name(const std::string& target) {
        const auto slash = target.rfind('/') + 1;
        return target.substr(0, slash) + "." + target.substr(slash) + ".XXXXXX";
    }

    bool like_target() const {
        struct stat original {};
        return fd_ >= 0 && ::stat(target_.c_str(), &original) == 0 &&
               ::fchown(fd_, original.st_uid, original.st_gid) == 0 && ::fchmod(fd_, original.st_mode & 07777) == 0;
    }

    std::string target_;
    std::string path_;
    int fd_ = -1;
    bool placed_ = false;
};

PolicyEdit::PolicyEdit(std::unique_ptr<Replacement> replacement, Policy policy)
    : replacement_(std::move(replacement)), policy_(std::move(policy)) {}
PolicyEdit::PolicyEdit(PolicyEdit&&) noexcept = default;
PolicyEdit& PolicyEdit::operator=(PolicyEdit&&) noexcept = default;
PolicyEdit::~PolicyEdit() = default;

Result<PolicyEdit> PolicyEdit::prepare(const std::string& path, const std::vector<LimitChange>& changes) {
    if (const auto free = check_not_overridden(path, changes); !free) return Error{free.error()};
    const auto target = linked_file(path);
    const auto text = read_text(target);
    if (!text) return Error{text.error()};
    const auto edited = edit_policy(text.value(), path, changes);
    if (!edited) return Error{edited.error()};
    auto policy = read_policy(path, edited.value());
    if (!policy) return Error{fmt::format("{}: unchanged, since the policy would be wrong: {}", path, policy.error())};
    auto replacement = std::make_unique<Replacement>(target);
    if (!replacement->write(edited.value())) return replacement->failure();
    return PolicyEdit(std::move(replacement), std::move(*policy));
}

Result<void> PolicyEdit::put_in_place() {
    if (replacement_->put_in_place()) return {};
    return replacement_->failure();
}

Result<void> persist_policy(const std::string& path, const std::vector<LimitChange>& changes) {
    auto edit = PolicyEdit::prepare(path, changes);
    if (!edit) return Error{edit.error()};
    return edit->put_in_place();
}

std::string linked_file(const std::string& path) {
    char buffer[PATH_MAX];
    return ::realpath(path.c_str(), buffer) == nullptr ? path : buffer;
}

}  // namespace rdmaquota
