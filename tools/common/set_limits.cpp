#include "tools/common/set_limits.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

std::uint64_t limit_now(const PolicySegment& policy, Scope scope, const std::string& device, Resource resource) {
    if (device != any_device && device != total_device) return policy.limit(scope, device, resource);
    const auto limit = load_limit(policy.row(scope, device), resource);
    return limit == unset ? unlimited : limit;
}

}  // namespace

Result<PolicySegment> open_for_change(const std::string& directory) {
    const auto path = policy_path(directory);
    if (::access(path.c_str(), W_OK) != 0 && errno != ENOENT)
        return Error{fmt::format("cannot change the limits in {}: {}{}", path, std::strerror(errno),
                                 ::geteuid() == 0 ? "" : "; run as root")};
    return PolicySegment::open(path, true);
}

Result<void> check_room(const PolicySegment& policy, Scope scope, const std::string& device) {
    const auto now = policy.decompile();
    const auto& rows = scope == Scope::process ? now.process : now.tenant;
    if (policy.row(scope, device) != nullptr || rows.size() < policy_rows) return {};
    return Error{fmt::format("no room for limits of another device: all {} rows of the policy are taken", policy_rows)};
}

Result<std::vector<LimitDone>> set_limits(PolicySegment& policy, const LimitRequest& request) {
    std::vector<LimitDone> done;
    for (const auto& [resource, limit] : request.settings) {
        const auto before = limit_now(policy, request.scope, request.device, resource);
        if (const auto set = policy.set(request.scope, request.device, resource, limit); !set)
            return Error{set.error()};
        policy.note_set(request.scope, request.device, resource);
        done.push_back({resource, before, limit});
    }
    return done;
}

}  // namespace rdmaquota
