// One tenant of the node, as the sidecar follows it: its limits, its ledger, and who its members are.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "policy/policy.hpp"
#include "shm/ledger/access.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/rdmaquotad/node/ledger_watch.hpp"

namespace rdmaquota {

class Tenant {
public:
    explicit Tenant(TenantPlace place);

    const std::string& key() const noexcept { return place_.key; }
    const TenantPlace& place() const noexcept { return place_; }
    const std::string& name() const noexcept { return name_; }  // as it is shown

    // Opens limits that were missing or replaced, and sees whether there is a ledger.
    void refresh();
    // The same when the tenant's directory may be another one, or its members others.
    void reopen();

    // Null where there are none. With all parts.
    const LimitsSegment* limits() const noexcept { return limits_ ? &*limits_ : nullptr; }
    Mode mode() const noexcept { return limits_ ? limits_->mode() : Mode::enforce; }
    // For a change; waits at most 100 ms for another writer.
    Result<LimitsWriter> writer() const;
    bool writable() const;
    // What is not as configured at present.
    const std::vector<LimitsWriter::Held>& held();

    // Inner tenants and templates have none.
    bool has_ledger() const noexcept { return has_ledger_; }
    LedgerWatch& ledger() noexcept { return ledger_; }
    const LedgerWatch& ledger() const noexcept { return ledger_; }

    // Whether processes with these ids may charge it.
    bool admits(uid_t user, std::span<const gid_t> groups);
    // The same for processes that have the tenant's directory mounted; root among them needs no rights.
    bool admits_inside(uid_t user, std::span<const gid_t> groups);

private:
    TenantPlace place_;
    std::string name_;
    std::optional<LimitsSegment> limits_;
    ino_t limits_inode_ = 0;
    LedgerWatch ledger_;
    bool has_ledger_ = false;
    struct Members {
        std::uint32_t ledger;  // LedgerWatch::number
        std::optional<FileRights> rights;
        bool open;  // others can enter the directory
    };
    const Members& members();
    std::optional<Members> members_;
    std::vector<LimitsWriter::Held> held_;
    std::uint64_t held_at_ = LimitsSegment::lost_generation;  // generation
};

}  // namespace rdmaquota
