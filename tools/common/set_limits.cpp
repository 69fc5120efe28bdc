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

Result<PolicyWriter> open_for_change(const std::string& directory) {
    const auto path = policy_path(directory);
    if (::access(path.c_str(), W_OK) != 0 && errno != ENOENT)
        return Error{fmt::format("cannot change the limits in {}: {}{}", path, std::strerror(errno),
                                 ::geteuid() == 0 ? "" : "; run as root")};
    return PolicyWriter::open(path);
}

Result<void> check_room(const PolicySegment& policy, Scope scope, const std::string& device) {
    const auto now = policy.decompile();
    const auto& rows = scope == Scope::process ? now.process : now.tenant;
    if (policy.row(scope, device) != nullptr || rows.size() < policy_rows) return {};
    return Error{fmt::format("no room for limits of another device: all {} rows of the policy are taken", policy_rows)};
}

Result<std::vector<LimitDone>> set_limits(PolicyWriter& writer, const LimitRequest& request) {
    std::vector<LimitDone> done;
    for (const auto& [resource, limit] : request.settings)
        done.push_back({resource, limit_now(writer.policy(), request.scope, request.device, resource), limit});
    if (const auto set = writer.set(request.scope, request.device, request.settings); !set) return Error{set.error()};
    for (const auto& change : done) writer.note_set(request.scope, request.device, change.resource);
    return done;
}

}  // namespace rdmaquota
