// What helps against a denial: what its reader can do, or what to ask an administrator for. For the provider's log
// lines and for the tools.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/limit.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota {

// How things stand with the limit that was met.
struct Circumstances {
    std::string directory;  // the quota directory
    std::string tenant;
    Reason reason = Reason::configured;
    std::string why = {};       // of that reason, in the words of whoever holds it; empty where nobody said
    std::string set_for = {};   // the device for which `rdmaquota set` lowered it; empty: it did not
    std::uint64_t of_file = 0;  // what `rdmaquota unset` would bring back, then
    std::string above = {};     // the tenant above whose limit bounds the share; and that limit
    std::uint64_t above_limit = 0;
    bool may_change = true;                 // the limits can be changed by this process
    std::optional<std::uint64_t> own = {};  // what the denied process uses of it, where that is known
};

// Looks them up in the tenant's directory `here`, for the reason that the denial had. Opens files, so call it only
// where its words will be read.
Circumstances circumstances_of(const std::string& directory, const std::string& here, const std::string& tenant,
                               std::string_view device, const Denial& denial, Reason reason);

// A sentence without its full stop. It has "to allow it: " and a command where one helps.
std::string remedy(std::string_view device, const Denial& denial, const Circumstances& found);

// Whether it is the soft limit that was met.
bool is_soft(const LimitsSegment& limits, DeviceKey device, const Denial& denial) noexcept;

// Why the limit is what it is.
Reason reason_of(const LimitsSegment& limits, DeviceKey device, const Denial& denial) noexcept;

}  // namespace rdmaquota
