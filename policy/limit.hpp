// Limit values: how they are written and what they mean.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "policy/resource.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

// No limit ("max").
inline constexpr std::uint64_t unlimited = UINT64_MAX;

// No value in this row: the next, more general one decides.
inline constexpr std::uint64_t unset = UINT64_MAX - 1;

// A limit in percent of what a device, or the node, has: a word in the place of an amount, in tenths of a percent. The amount that
// it stands for depends on the device; see LimitsSegment::amount.
inline constexpr std::uint64_t percent_base = std::uint64_t{1} << 62;
inline constexpr std::uint64_t most_tenths = 1000;  // 100%
constexpr std::uint64_t percentage(std::uint64_t tenths) noexcept { return percent_base + tenths; }
constexpr bool is_percentage(std::uint64_t limit) noexcept { return limit >> 62 == 1; }
constexpr std::uint64_t tenths_of(std::uint64_t percentage) noexcept { return percentage - percent_base; }

// The amount that a percentage is of `capacity`: rounded down, but at least 1. `unlimited` where the capacity is not known, 0.
std::uint64_t amount_of(std::uint64_t percentage, std::uint64_t capacity) noexcept;

// Whether devices report how many of these they have, or the node its memory: what percentages are possible of.
constexpr bool has_capacity(Resource resource) noexcept {
    using enum Resource;
    return resource == qp || resource == cq || resource == mr || resource == pd || resource == srq || resource == ah ||
           resource == mw || resource == mr_bytes;
}

// Whether two limits can be compared without knowing a device: two amounts, or two percentages. No limit is above both.
constexpr bool are_comparable(std::uint64_t a, std::uint64_t b) noexcept {
    return a == unlimited || b == unlimited || is_percentage(a) == is_percentage(b);
}

// Why a limit is what it is at present.
enum class Reason : std::uint8_t {
    configured,  // policy file or `rdmaquota set`
    rule,        // a dynamic rule of the policy
    grant,       // the tenant's share of what is above it in the tree
    soft,        // the soft limit, exceeded for longer than the grace period; in no file
    cluster,     // this node's part of what the tenant may use on all nodes
    other,       // one that a later version knows
};

// Whether the limit may be larger soon, when the sidecar is asked.
constexpr bool is_share(Reason reason) noexcept { return reason == Reason::grant || reason == Reason::cluster; }

std::string_view name(Reason) noexcept;

// The largest amount that can be limited or charged at once (4 PiB - 1). The ledger keeps a tag in
// the upper bits of each gate; see shm/ledger/layout.hpp.
inline constexpr std::uint64_t max_amount = (std::uint64_t{1} << 52) - 1;

// Reads "10", "10k" (1000), "4Ki" (1024), "2GiB", "1.5GB", "max", and "25%" or "12.5%" where has_capacity. A suffix B is taken for
// byte resources only. Errors name the text and the accepted forms.
Result<std::uint64_t> parse_limit(Resource resource, std::string_view text);

// "RES=N" as on the command line, e.g. "qp=10".
struct Setting {
    Resource resource;
    std::uint64_t limit;
};
Result<Setting> parse_setting(std::string_view text);

// "12", "4 GiB", "max", "25%"; for people.
std::string format_amount(Resource resource, std::uint64_t amount);

// Formats an amount with the percentage that was written for it: "250 (25%)"; "25%" while the amount is not known.
std::string format_amount(Resource resource, std::uint64_t amount, std::uint64_t written);

// "12", "4GiB" (exact, so that parse_limit gives the same number back), "max", "25%"; for files and
// command lines.
std::string format_limit(Resource resource, std::uint64_t limit);

// The largest amount that is charged for one object. No device accepts more than fits into a 47-bit address space, and
// a request that will fail must not fill a cell meanwhile.
inline constexpr std::uint64_t largest_charge = std::uint64_t{1} << 47;

// The names of all that is counted, and of all that can be limited, for error messages.
std::string resource_names();
std::string limit_names();

// How long a rate may delay a call before it is denied.
inline constexpr std::uint32_t default_max_delay_ms = 1000, most_max_delay_ms = 60'000;

}  // namespace rdmaquota
