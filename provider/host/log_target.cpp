#include "provider/host/log_target.hpp"

#include <atomic>
#include <cerrno>

#include "provider/host/environment.hpp"
#include "provider/host/log.hpp"
#include "shm/paths.hpp"

namespace rdmaquota::provider {
namespace {

struct Settings {
    log::Target target;
    bool of_node = false;
    const Settings* before = nullptr;
};

// Superseded settings stay allocated, since another thread may be reading them: a few bytes for each change.
std::atomic<const Settings*> current = nullptr;

log::Target tightened(log::Target target) {
    const auto& own = environment();
    if (own.log_level) target.level = *own.log_level;
    if (!own.log_file.empty()) {
        target.target = LogTarget::file;
        target.file = own.log_file;
    }
    return target;
}

void follow(log::Target target, bool of_node) {
    const auto* before = current.load();
    if (before && before->of_node && !of_node) return;
    if (before && before->of_node == of_node && before->target == target) return;
    const auto* fresh = new Settings{std::move(target), of_node, before};
    // Another thread that was faster has read the same policy, or will read the next one.
    if (!current.compare_exchange_strong(before, fresh)) delete fresh;
}

void read_first_policy() {
    for (const auto& [directory, second] : quota_directories())
        for (const auto& here : {directory, here_path(directory), here_path(second ? second : directory)})
            if (const auto limits = LimitsSegment::open(limits_path(here)))
                return follow_log_settings(directory, *limits);
    follow(tightened({}), false);
}

}  // namespace

void follow_log_settings(const std::string& directory, const LimitsSegment& policy) {
    follow(tightened({policy.log_level(), policy.log_target(), policy.log_file()}), is_node_directory(directory));
}

bool says(LogLevel level) noexcept {
    const auto* settings = current.load();
    return settings != nullptr && level <= settings->target.level;
}

void say(LogLevel level, std::string_view message) noexcept {
    const int saved = errno;
    try {
        if (!current.load()) read_first_policy();
        if (const auto* settings = current.load()) log::write(settings->target, level, message);
    } catch (...) {  // no memory: nothing can be said
    }
    errno = saved;
}

}  // namespace rdmaquota::provider
