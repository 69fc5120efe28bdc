// The quota directory as the daemon sees it: its ledger and its running policy, opened again when they
// are replaced. Nothing that happens to them ends the daemon; it says what is missing and goes on. A ledger that is
// cut short or overwritten, which every user can do who may charge, it replaces, so that programs have one to charge.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

#include "shm/ledger/ledger.hpp"
#include "shm/policy/policy_writer.hpp"
#include "tools/common/sidecar_files.hpp"

namespace rdmaquota {

class QuotaDirectory {
public:
    explicit QuotaDirectory(std::string directory);

    // Opens what was not there, was replaced or was cut short. True when the running policy is another
    // one than before, or the first; limits that were changed in the old one are then the configured ones.
    bool refresh();

    const std::string& directory() const noexcept { return directory_; }
    bool usable() const noexcept { return ledger_.has_value() && policy_.has_value(); }
    const std::string& missing() const noexcept { return missing_; }  // why it is not usable, else empty

    // Where a damaged ledger was moved to since the last call; else empty.
    std::string take_aside() { return std::exchange(aside_, {}); }

    // Only while it is usable.
    Ledger& ledger() noexcept { return *ledger_; }
    const PolicySegment& policy() const noexcept { return *policy_; }
    // The policy at the path, for changing it: another one than policy() where it was replaced since the last refresh.
    // Waits 100 ms at most for another writer.
    Result<PolicyWriter> policy_writer() const;
    ino_t ledger_inode() const noexcept { return ledger_inode_; }  // another one for each ledger
    // What all processes together use on a device, by their own word; 0 for one that is not known.
    std::uint64_t usage(const std::string& device, Resource resource) const;
    // Whether this daemon may change limits.
    bool writable() const noexcept { return writable_; }

private:
    void open_ledger();
    void replace_damaged(const std::string& path);
    bool open_policy();

    std::string directory_;
    std::optional<Ledger> ledger_;
    ino_t ledger_inode_ = 0;
    std::chrono::steady_clock::time_point may_replace_;  // from then on
    std::string aside_, last_aside_;
    std::optional<PolicySegment> policy_;
    bool writable_ = false;
    std::string missing_;
};

}  // namespace rdmaquota
