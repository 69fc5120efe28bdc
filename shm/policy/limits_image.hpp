// A file of limits while it is made; for limits_writer.cpp.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "shm/policy/limits_segment.hpp"
#include "shm/policy/limits_writer.hpp"

namespace rdmaquota {

// What holds in a row for a share and for what is configured: by the row itself, and for its device.
struct Settled {
    std::uint64_t effective;
    Reason reason;
};
Settled settle(std::uint64_t own, std::uint64_t configured, std::uint64_t granted, std::uint64_t ceiling = unset) noexcept;

// Has the row of a selector hold for the device that `bound` names for it, or for none. False: it does already.
bool bind_row(LimitsRow& row, std::span<const BoundDevice> bound) noexcept;

class LimitsImage {
public:
    // The error says what there is no room for.
    static Result<LimitsImage> compile(const TenantLimits& limits);
    // What is in a mapped file, with another id.
    static LimitsImage copy(const LimitsHeader& header, const LimitsRow* rows, const OriginRow* origins,
                            std::size_t count);

    // Has what is configured for a template instead, as a tenant of it. Nothing of the tenant's own is there yet.
    void take_rows(const LimitsHeader& header, const LimitsRow* rows, const OriginRow* origins);

    // Adds a row that says nothing. The name is a device's.
    void add_row(Scope scope, std::string_view device);

    // What would be in force without any reason, as LimitsSegment::configured.
    std::uint64_t configured(Scope scope, std::string_view device, Resource resource) const;
    // Knows what devices have, as a file from before does.
    void keep_capacities(const LimitsSegment& before);
    // What the cluster lets this node use stays, and what it begins with is added where it said nothing.
    Result<void> keep_ceilings(const LimitsSegment& before);
    Result<void> begin_ceilings(std::span<const Resource> resources);
    // Gives the tenant a share, or several; an error when there is no room for its device.
    Result<void> grant(const ScopeLimits& amounts);
    Result<void> grant(std::string_view device, Resource resource, std::uint64_t amount);

    // Removes the rows of devices; false: there are none.
    bool drop(std::span<const std::string> devices);

    std::string bytes() const;

private:
    Result<void> add_scope(Scope scope, const ScopeLimits& own, const ScopeLimits& for_everyone);
    std::uint64_t amount(std::uint64_t limit, std::string_view device, Resource resource) const;
    std::optional<std::size_t> find(Scope scope, std::string_view device) const;
    void fill_last(const LimitRow* own, const LimitRow* for_everyone);
    void bind(std::span<const BoundDevice> bound);
    std::uint64_t ceiling(std::string_view device, Resource resource) const;
    Result<void> put_ceiling(Resource resource, std::uint64_t amount);
    void fill_parts(const TenantLimits& limits);
    void mark_override(const TenantLimits& limits);
    Result<std::size_t> row_to_write(Scope scope, std::string_view device);

    LimitsHeader header_{};
    std::vector<LimitsRow> rows_;
    std::vector<OriginRow> origins_;
};

// Tells the readers of the file at `path`, which another one has replaced.
void mark_superseded(const std::string& path) noexcept;

}  // namespace rdmaquota
