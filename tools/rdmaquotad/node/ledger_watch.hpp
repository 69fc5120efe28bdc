// One tenant's ledger as the sidecar follows it: read when something happened there, mapped while it has owners, replaced
// when it was damaged. Whatever happens to it, the sidecar goes on and says what is missing. No descriptor stays open.
//
// At rest is a ledger without an owner in which no slot was claimed since; that is found out by `check`, which is cheap.
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "shm/ledger/ledger.hpp"
#include "shm/ledger/ledger_copy.hpp"
#include "tools/rdmaquotad/node/gate_corrector.hpp"
#include "tools/rdmaquotad/node/figures.hpp"
#include "tools/rdmaquotad/node/ledger_head.hpp"
#include "tools/rdmaquotad/loop/look_schedule.hpp"

namespace rdmaquota {

class LedgerWatch {
public:
    using Clock = std::chrono::steady_clock;

    // The ledger in directory `path`; the access is for a new one that replaces a damaged one whose rights cannot be read.
    LedgerWatch(std::string path, LedgerAccess otherwise) : path_(std::move(path)), otherwise_(std::move(otherwise)) {}

    // Sees whether it is another one, damaged, or in use again, and replaces a damaged one: at most once a minute, and
    // not one that never was a ledger of this version.
    void check();

    // Reads it. `scratch` is anyone's; it holds this ledger afterwards. `devices` are those of the machine.
    void look(LedgerCopy& scratch, const std::set<std::string>& devices, Clock::time_point now);
    // The ledger as a whole, for those who want more than its figures; false when there is none.
    bool copy(LedgerCopy& scratch, LedgerCopy::Parts parts = LedgerCopy::Parts::usage_and_activity) const;
    // Uncharges what dead owners held.
    void reap();

    const std::string& path() const noexcept { return path_; }
    bool usable() const noexcept { return head_.sound; }
    const std::string& missing() const noexcept { return missing_; }  // why it is not usable, or empty
    bool at_rest() const noexcept { return looks_left_ == 0; }
    // The path to which a damaged ledger was moved since the last call, or empty.
    std::string take_aside() { return std::exchange(aside_, {}); }

    // As of the last look.
    const Figures& figures() const noexcept { return figures_; }
    const std::vector<SlotUse>& slots() const noexcept { return slots_; }
    Clock::time_point looked() const noexcept { return looked_; }
    std::uint64_t claims() const noexcept { return head_.claims; }
    // Differs between any two ledgers, those that follow one another at one place too; 0: there is none.
    std::uint32_t number() const noexcept { return number_; }
    EventCursor events() const noexcept { return ledger_ ? ledger_->event_cursor() : head_.events; }
    std::uint64_t gates_corrected() const noexcept { return gates_corrected_; }
    std::uint64_t owners_reaped() const noexcept { return owners_reaped_; }  // by this sidecar

    LookSchedule::Turn turn;       // of looks
    LookSchedule::Turn reap_turn;  // of reaps that cannot wait for one

private:
    // After its last owner ended: for the gates.
    static constexpr unsigned looks_after = 8;

    void replace_damaged();
    void forget();
    void wake() noexcept { looks_left_ = looks_after; }
    void map();

    std::string path_;
    LedgerAccess otherwise_;
    LedgerHead head_;
    std::uint32_t number_ = 0;  // not 0: the file at the path is, or was before somebody damaged it, a ledger
    unsigned looks_left_ = 0;
    std::optional<Ledger> ledger_;  // while it is not at rest
    std::unique_ptr<GateCorrector> gates_;
    Figures figures_;
    std::vector<SlotUse> slots_;
    Clock::time_point looked_{}, reaped_{}, may_replace_{};
    std::uint64_t gates_corrected_ = 0, owners_reaped_ = 0;
    std::string aside_, last_aside_, missing_;
};

}  // namespace rdmaquota
