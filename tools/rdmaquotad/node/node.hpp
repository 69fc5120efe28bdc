// The node as the sidecar follows it: the policy that says who is in which tenant, and the tenants, of which new ones
// come and others go. A directory that is one tenant's own is a node with that tenant, whose key is empty, and without
// a policy.
//
// One thread. Nothing here logs.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <sys/stat.h>

#include "shm/policy/node_policy.hpp"
#include "tools/common/tenants/subject.hpp"
#include "tools/rdmaquotad/loop/look_schedule.hpp"
#include "tools/rdmaquotad/node/tenant.hpp"

namespace rdmaquota {

class Node {
public:
    using Clock = std::chrono::steady_clock;
    using Tenants = std::map<std::string, Tenant, std::less<>>;  // by key

    explicit Node(std::string directory, LookSchedule::Now now = Clock::now);

    // Opens what was missing, replaced or made since. True when the policy is the first one or another than before.
    bool refresh();

    // Reads the ledgers in use that are due, until `budget` is over (see LookSchedule); at rest, checks are enough.
    // `devices` are those of the machine.
    void look(const std::set<std::string>& devices, Clock::duration budget);
    // Sees which of the ledgers that are not read now are in use again, or damaged.
    void check(Clock::duration budget);
    // Looks at one ledger now, unless its turn has not come yet.
    void look_at(LedgerWatch& ledger, const std::set<std::string>& devices);

    const std::string& directory() const noexcept { return directory_; }
    bool is_own() const noexcept { return own_; }
    bool usable() const noexcept { return missing_.empty(); }
    // Why there is nothing to follow, or empty.
    const std::string& missing() const noexcept { return missing_; }
    // Null in a directory that is one tenant's own.
    const NodePolicy* policy() const noexcept { return policy_ ? &*policy_ : nullptr; }
    // What else the policy says, without limits; the sidecar's own part is only in a node's policy.
    const Policy& decompiled() const noexcept { return decompiled_; }

    Tenants& tenants() noexcept { return tenants_; }
    const Tenants& tenants() const noexcept { return tenants_; }
    Tenant* find(std::string_view key);
    // Those that have a ledger.
    const std::vector<Tenant*>& with_ledger() const noexcept { return with_ledger_; }
    // The tenant of a process by the node's matches; that of the directory where there are none. `default` for one that
    // is gone or in a tenant that is not there.
    std::string tenant_of(std::uint32_t pid) const;
    std::string tenant_of(const ProcessSubject& subject) const;
    // The process belongs to a tenant of a template that nobody has made yet.
    bool lacks_tenant_of(const ProcessSubject& subject) const;
    // Whether this daemon may change limits.
    bool writable() const noexcept { return writable_; }

    LedgerCopy& scratch() noexcept { return scratch_; }
    const LookSchedule& schedule() const noexcept { return schedule_; }
    // How many slots were claimed in all ledgers: another number may mean another owner of any slot.
    std::uint64_t claims() const noexcept;

private:
    bool read_policy();
    bool tenants_changed();
    void list_tenants();
    void update_missing();

    std::string directory_;
    LookSchedule schedule_;
    bool own_ = false, writable_ = false;
    std::optional<NodePolicy> policy_;
    struct stat policy_file_ {}, tenants_file_ {};
    Policy decompiled_;
    Tenants tenants_;
    std::vector<Tenant*> with_ledger_;
    std::size_t next_check_ = 0;  // of with_ledger_, with which the next check begins
    LedgerCopy scratch_;
    std::string missing_;
};

}  // namespace rdmaquota
