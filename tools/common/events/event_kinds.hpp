// Every kind of event that `rdmaquota events` may print. rdmaquota-events(1) describes each under its name; the suite
// `house` compares the two.
#pragma once

#include <algorithm>
#include <array>
#include <string_view>

namespace rdmaquota {

// Those of ledgers, by EventKind without `none`.
inline constexpr std::array<std::string_view, 7> ledger_kinds{
    "denied", "would_deny", "unproved", "reaped", "reconciled", "refused_by_device", "delayed",
};

// Those of the sidecar.
inline constexpr std::array<std::string_view, 19> sidecar_kinds{
    "bypass",   "bypass_ended", "leak",   "leak_ended", "tightened",       "relaxed",         "restored", "frozen", "thawed",
    "refused",  "exceeded",     "killed", "waiting",    "ledger_replaced", "backstop_denied", "found",
    "above_soft", "below_soft",
    "job",  // of Slurm, also without a sidecar
};

constexpr bool is_event_kind(std::string_view name) noexcept {
    return std::find(ledger_kinds.begin(), ledger_kinds.end(), name) != ledger_kinds.end() ||
           std::find(sidecar_kinds.begin(), sidecar_kinds.end(), name) != sidecar_kinds.end();
}

// A kind of the sidecar's, by its name: one that is missing above does not compile.
class SidecarKind {
public:
    consteval SidecarKind(const char* name) : name_(name) {
        if (std::find(sidecar_kinds.begin(), sidecar_kinds.end(), name_) == sidecar_kinds.end())
            throw "no kind of tools/common/events/event_kinds.hpp";
    }
    constexpr operator std::string_view() const noexcept { return name_; }

private:
    std::string_view name_;
};

}  // namespace rdmaquota
