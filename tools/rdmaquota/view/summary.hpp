// Listings of `rdmaquota show` that fit a screen: filtered, one line per tenant, and recent denials.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "policy/resource.hpp"
#include "policy/result.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/common/views/json_fwd.hpp"
#include "tools/rdmaquota/view/event_source.hpp"

namespace rdmaquota {

struct TenantReading;

// What a listing is narrowed to. What is empty narrows nothing.
struct Narrowing {
    std::vector<std::string> devices;  // "total" is one
    std::vector<Resource> resources;
    std::optional<uid_t> user;         // tenants in which this user has a process, and no other processes

    bool any() const noexcept { return !devices.empty() || !resources.empty() || user; }
};

// Of words on a command line; an error names what is no resource.
Result<Narrowing> narrowing(const std::vector<std::string>& devices, const std::vector<std::string>& resources);

// Whether the options of a listing, which ask for all where there are none, ask for this.
template <typename Value>
bool is_asked(const std::vector<Value>& for_these, const Value& value) {
    return for_these.empty() || std::find(for_these.begin(), for_these.end(), value) != for_these.end();
}

// Leaves out what is not asked for, and tenants of which nothing is left. A tenant's figures stay those of the whole tenant.
void narrow(std::vector<TenantReading>& tenants, const Narrowing& to);

// How a summary is sorted: what is fullest first, what has most of a resource, or by name.
struct SummaryOrder {
    enum class By : std::uint8_t { fullness, resource, name } by = By::fullness;
    Resource resource = Resource::qp;  // By::resource
};
// Of "full", "name" or a resource's name; none for another word.
std::optional<SummaryOrder> summary_order(std::string_view word);

// A tenant in one line.
struct SummaryLine {
    std::string tenant;  // not yet safe to print
    std::size_t processes = 0;
    bool partial = false;  // some of the tenants below it may not be read
    // Of what its limit is used up most; none where nothing that is used has a limit.
    struct Fullest {
        std::string device;
        Resource resource;
        std::uint64_t usage, limit;
        double share() const noexcept;  // 1 where the limit is reached
    };
    std::optional<Fullest> fullest;
    std::array<std::uint64_t, resource_count> usage{};  // the sum over devices

    bool uses_something() const noexcept;
};

std::vector<SummaryLine> summarize(const std::vector<TenantReading>& tenants, const SummaryOrder& order);

// At most `most` of them; 0: all. `resources`: the columns of usage, where empty those that matter most.
Table summary_table(const std::vector<SummaryLine>& lines, std::size_t most, const std::vector<Resource>& resources);
Json summary_json(const std::vector<SummaryLine>& lines, std::size_t most);

// What was denied since `since` (UTC, as in an event's "time"), most often first: one line for each tenant, device and resource.
std::vector<std::string> denial_lines(const EventsByTime& events, const std::string& since);

}  // namespace rdmaquota
