// The ledger and the running policy of a quota directory, opened again when they are replaced. Whatever happens to them,
// the daemon goes on and says what is missing. It replaces a ledger that was cut short or overwritten, as anyone who
// may charge can do, so that programs have one to charge.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include <sys/types.h>

#include "shm/ledger/ledger.hpp"
#include "shm/ledger/ledger_copy.hpp"
#include "shm/policy/limits_writer.hpp"

namespace rdmaquota {

class QuotaDirectory {
public:
    explicit QuotaDirectory(std::string directory);

    // Opens what was missing, replaced or cut short. True when the running policy is the first one or another than
    // before; in a new one all limits are the configured ones.
    bool refresh();

    const std::string& directory() const noexcept { return directory_; }
    bool usable() const noexcept { return ledger_.has_value() && policy_.has_value(); }
    const std::string& missing() const noexcept { return missing_; }  // why it is not usable, or empty

    // The path to which a damaged ledger was moved since the last call, or empty.
    std::string take_aside() { return std::exchange(aside_, {}); }

    // The following only while it is usable.
    Ledger& ledger() noexcept { return *ledger_; }
    const Ledger& ledger() const noexcept { return *ledger_; }
    const LimitsSegment& policy() const noexcept { return *policy_; }
    // The policy at the path, for changing it: another one than policy() if it was replaced since the last refresh.
    // Waits at most 100 ms for another writer.
    Result<LimitsWriter> policy_writer() const;

    // Copies the ledger. False when that cannot be done, or another one is in its place; the copy is an empty one then.
    bool copy_ledger(LedgerCopy::Parts parts = LedgerCopy::Parts::usage);
    const LedgerCopy& ledger_copy() const noexcept { return copy_; }  // the last one
    // Usage of a device by all processes, as the last copy has it; 0 for an unknown device.
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
    LedgerCopy copy_;
    std::chrono::steady_clock::time_point may_replace_;  // from then on
    std::string aside_, last_aside_;
    std::optional<LimitsSegment> policy_;
    bool writable_ = false;
    std::string missing_;
};

}  // namespace rdmaquota
