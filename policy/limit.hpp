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

// Why a limit is what it is at present.
enum class Reason : std::uint8_t {
    configured,  // policy file or `rdmaquota set`
    rule,        // a dynamic rule of the policy
    grant,       // the tenant's share of what is above it in the tree
    soft,        // the soft limit, exceeded for longer than the grace period; in no file
    other,       // one that a later version knows
};

std::string_view name(Reason) noexcept;

// The largest amount that can be limited or charged at once (4 PiB - 1). The ledger keeps a tag in
// the upper bits of each gate; see shm/ledger/layout.hpp.
inline constexpr std::uint64_t max_amount = (std::uint64_t{1} << 52) - 1;

// Reads "10", "10k" (1000), "4Ki" (1024), "2GiB", "1.5GB", "max". A suffix B is taken for byte
// resources only. Errors name the text and the accepted forms.
Result<std::uint64_t> parse_limit(Resource resource, std::string_view text);

// "RES=N" as on the command line, e.g. "qp=10".
struct Setting {
    Resource resource;
    std::uint64_t limit;
};
Result<Setting> parse_setting(std::string_view text);

// "12", "4 GiB", "max"; for people.
std::string format_amount(Resource resource, std::uint64_t amount);

// "12", "4GiB" (exact, so that parse_limit gives the same number back), "max"; for files and
// command lines.
std::string format_limit(Resource resource, std::uint64_t limit);

// The largest amount that is charged for one object. No device accepts more than fits into a 47-bit address space, and
// a request that will fail must not fill a cell meanwhile.
inline constexpr std::uint64_t largest_charge = std::uint64_t{1} << 47;

// The sentence fragment that lists every resource name, for error messages.
std::string resource_names();

}  // namespace rdmaquota
