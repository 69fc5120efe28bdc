// The node's compiled policy: which tenants there are, who is in which, and what the sidecar is asked to do. Limits are
// not in it: each tenant has a file of its own (shm/policy/limits_segment.hpp).
//
// Root publishes it by renaming a new file over the old one. It never changes in place, so a reader reads it whole
// and keeps no mapping. The provider reads it at each opening of a device; names of users and groups have become
// numbers by then, since asking for them (NSS) would load libraries into the host program.
//
// Layout, little-endian, each record 8-byte aligned:
//   NodeHeader; CompiledTenant[tenant_count]; CompiledMatch[match_count]; CompiledSidecar; text bytes
// Matches stand in the order in which they are tried: those of containers first, then of transient tenants, then that of the file. Strings
// are {offset, length} into the text. Every offset is checked when the file is read: only root writes it, but a
// truncated or foreign file must crash nobody.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "shm/policy/policy_lock.hpp"

namespace rdmaquota {

// Who a process is, as far as matches look. The provider's own: provider/host/subject.hpp; another's: tools/common.
struct Subject {
    std::optional<uid_t> user;  // effective; none where it is not known
    std::optional<gid_t> group;
    std::span<const gid_t> groups;  // supplementary
    std::string_view cgroup;        // empty where it is not known: then no match by cgroup or unit holds
};

class NodePolicy {
public:
    enum class Parts : std::uint8_t { all, without_sidecar };  // its part is the largest, and for the tools alone
    static Result<NodePolicy> read(const std::string& path, Parts parts = Parts::all);

    NodePolicy(NodePolicy&&) noexcept;
    NodePolicy& operator=(NodePolicy&&) noexcept;
    ~NodePolicy();

    std::uint64_t id() const noexcept;      // differs between any two published policies
    // Equal in two policies where each process is in the same tenant, whatever their limits; may differ there too.
    std::string rules() const;
    bool asks_for_ids() const noexcept;     // some match looks at user or group, or leads to a template with {user}
    bool asks_for_cgroup() const noexcept;  // some match looks at cgroup or unit
    // Whether some tenant's programs do not list all devices; none where there is no policy. Reads the header alone: programs ask this
    // for each device that they list.
    static std::optional<bool> hides_devices(const std::string& path) noexcept;
    // The node-wide ones. Values that this version does not know read as the defaults; deny_errno is never 0.
    Settings settings() const;

    struct Verdict {
        std::string tenant;                  // its key: a name, "user/#1000" for an instance of a template with {user}
        std::string from;                    // the tenant or template of the policy: "user/{user}"
        std::optional<std::uint32_t> match;  // which entry of its list decided, from 0; none: no match, so `default`
        bool hidden = false;  // a match by cgroup or unit was passed over because the cgroup is not known
    };
    // The first match wins. A template whose captures make no valid tenant name does not match.
    Verdict find(const Subject& subject) const;

    // All that was published, without limits. deny_errno is never 0.
    Policy decompile() const;

    // The names that were unknown when the policy was compiled, groups with '@' in front, once for each tenant. An
    // entry whose `user` or `group` is unknown never matches; one with an unknown member does.
    struct UnknownName {
        std::string tenant, name;  // "atlas", "@hpc"
    };
    std::vector<UnknownName> unknown_names() const;

    struct Image;  // shm/policy/node_image.hpp

private:
    explicit NodePolicy(std::unique_ptr<Image> image) noexcept;
    std::unique_ptr<Image> image_;
};

// How names become numbers; the tools ask NSS (tools/common/tenants/names.hpp).
struct NameLookup {
    std::function<std::optional<uid_t>(const std::string&)> user;
    std::function<std::optional<gid_t>(const std::string&)> group;
};

// Compiles `policy` and puts it in place of what is at `path`; the lock is that of `path`. Names that are unknown are
// kept as such. Needs write permission on the directory.
Result<void> publish_node_policy(const PolicyLock& lock, const std::string& path, const Policy& policy,
                                 const NameLookup& names);

}  // namespace rdmaquota
