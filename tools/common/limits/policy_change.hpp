// A change of limits, live and in the policy file, as one transaction: it takes the locks, resolves the tenants, changes the
// limits, then replaces the file. Either all of it happens, or nothing and an error. For `rdmaquota set` and `unset` and the
// control socket's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "policy/file/edit.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/limits/change_limits.hpp"
#include "tools/common/tenants/tenants.hpp"

namespace rdmaquota {

class PolicyChange {
public:
    enum class Kind : std::uint8_t { set, unset };

    // Takes the lock of the policy in force until the change is destroyed, and checks what can be checked before. The changes
    // have tenant, scope, device and part in common; for Kind::unset their limits are `unset`.
    static Result<PolicyChange> begin(const std::string& directory, Kind kind, std::vector<LimitChange> changes,
                                      std::chrono::milliseconds patience = PolicyLock::default_patience);
    // For the lock, where the file is changed, too: each of several scripts waits for all others' writes to the disk.
    static constexpr std::chrono::seconds patience_for_file{60};

    // The policy file is to say the same: what is `set` stands there, what is `unset` no longer does. Takes the lock of the
    // file, too, and writes the new text beside it.
    Result<void> prepare_file(const std::string& file);

    // Makes the change.
    Result<std::vector<LimitDone>> commit();

    // Tenants of the template of which the same was set, or stands in a table of their own: they keep it.
    const std::vector<std::string>& exempt() const noexcept { return exempt_; }

private:
    struct Undo {
        std::string here;
        std::vector<LimitsWriter::Cell> cells;
    };

    PolicyChange(std::string directory, Kind kind, std::vector<LimitChange> changes)
        : directory_(std::move(directory)), kind_(kind), changes_(std::move(changes)) {}
    const LimitKey& key() const noexcept { return changes_.front().key; }
    LimitPart part() const noexcept { return changes_.front().part; }
    bool is_for_everyone() const;
    Result<void> lock(std::chrono::milliseconds patience);
    Result<void> resolve();
    void note_exempt(const TenantPlace& place);
    Result<void> check() const;
    Result<std::string> name_in_file() const;
    Result<void> apply_at(const TenantPlace& place, std::vector<LimitDone>& done);
    Result<void> apply(LimitsWriter& writer, LimitsWriter::Whose whose) const;
    Result<void> rebase(LimitsWriter& writer, LimitsWriter::Whose whose) const;
    Error take_back(const std::string& why);

    std::string directory_;
    Kind kind_;
    std::vector<LimitChange> changes_;
    std::optional<PolicyLock> lock_, file_lock_;
    std::vector<TenantPlace> places_;  // the tenant itself first
    std::vector<std::string> exempt_;
    std::vector<Undo> undo_;
    std::optional<PolicyEdit> edit_;
    std::vector<LimitsWriter::Rebased> rebased_;  // by change, with the file
};

}  // namespace rdmaquota
