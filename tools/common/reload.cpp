#include "tools/common/reload.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "policy/file/policy_file.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/policy_segment.hpp"
#include "shm/policy/policy_writer.hpp"
#include "tools/common/config.hpp"

namespace rdmaquota {
namespace {

Result<void> make_directory(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) == 0) {
        if (::chmod(path.c_str(), 0755) == 0) return {};  // whatever the umask left of it
    } else if (errno == EEXIST) {
        return {};
    }
    return Error{
        fmt::format("cannot create {}: {}{}", path, std::strerror(errno), ::geteuid() == 0 ? "" : "; run as root")};
}

}  // namespace

std::string default_policy_file() { return fmt::format("{}/rdmaquota.toml", config::policy_dir); }

Result<Policy> load_policy(const std::string& path) {
    auto policy = read_policy(path);
    if (!policy) return policy;
    for (const auto* scope : {&policy->process, &policy->tenant})
        if (scope->size() > policy_rows)
            return Error{fmt::format("{}: names {} devices in one table; at most {} are possible", path, scope->size(),
                                     policy_rows)};
    return policy;
}

// Everything that can fail comes before the publication, which replaces the policy in one step. All limits are
// then the configured ones: what the sidecar has recorded of others names the policy that was before.
Result<Reloaded> reload_policy(const std::string& file, const std::string& directory) {
    if (::access(file.c_str(), F_OK) != 0 && errno == ENOENT)
        return Error{fmt::format("there is no policy file {}: copy {} there, or name another: rdmaquota reload FILE",
                                 file, config::example_policy)};
    if (const auto usable = load_policy(file); !usable) return Error{usable.error()};
    if (const auto made = make_directory(directory); !made) return Error{made.error()};
    const auto lock = PolicyLock::take(policy_path(directory));
    if (!lock) return Error{lock.error()};
    const auto policy = load_policy(file);  // again, since `set --persist` changes it under the lock
    if (!policy) return Error{policy.error()};
    const auto aside = Ledger::replace_unusable(ledger_path(directory), LedgerAccess::everyone());
    if (!aside) return Error{aside.error()};
    const auto published = PolicyWriter::publish(*lock, policy_path(directory), policy.value());
    if (!published) return Error{published.error()};
    return Reloaded{policy->mode, *aside, policy->warnings};
}

}  // namespace rdmaquota
