// Changes of a tenant's limits, by root: `rdmaquota set`, `unset` and `reload`, and the sidecar. One writer at a time, see
// shm/policy/policy_lock.hpp; readers never wait.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/limit.hpp"
#include "policy/limit_key.hpp"
#include "policy/result.hpp"
#include "shm/policy/limits_segment.hpp"
#include "shm/policy/policy_lock.hpp"

namespace rdmaquota {

class LimitsImage;

// The limits at a path, opened for changes. Holds the lock while it lives, so what it reads and then writes is one
// change to all other writers, and no new file takes the place of this one meanwhile. Keep it briefly.
class LimitsWriter {
public:
    static Result<LimitsWriter> open(const std::string& path,
                                     std::chrono::milliseconds patience = PolicyLock::default_patience);

    // Renames a file with `limits` over `path`; the one that was there becomes superseded. Nothing of what `set` or
    // `hold` changed before is kept, except that others keep their share: what was granted stays, and TenantLimits::first_grants are for a
    // tenant that had no limits before. Needs write permission on the directory.
    static Result<void> publish(const std::string& path, const TenantLimits& limits);
    // Publishes a copy of a template's limits for one of its tenants; `unset` returns to what the policy file says of the template.
    static Result<void> publish_instance(const std::string& path, const TenantLimits& limits, const LimitsSegment& of_template);

    // Of all parts.
    const LimitsSegment& limits() const noexcept { return limits_; }

    // Whose limits are changed: the tenant's; its template's, from which differs what was set for the tenant itself, or its own table
    // in the file says; or those that all processes have and the tenant's tables do not say.
    enum class Whose : std::uint8_t { tenant, its_template, everyone };

    // Changes what is configured for one device; all of it, or none and an error: when the name is no device's or there
    // is no room for it. Programs see the change at their next charge, unless a reason holds a limit that is lower.
    Result<void> set(Scope scope, std::string_view device, std::span<const Setting> settings,
                     Whose whose = Whose::tenant);
    Result<void> set(Scope scope, std::string_view device, Resource resource, std::uint64_t limit);
    // The same for the tenant's guarantees or soft limits.
    Result<void> set_part(LimitPart part, std::string_view device, std::span<const Setting> settings,
                          Whose whose = Whose::tenant);
    // Back to what the policy file said when it was published.
    Result<void> unset(Scope scope, std::string_view device, std::span<const Resource> resources,
                       Whose whose = Whose::tenant);
    Result<void> unset_part(LimitPart part, std::string_view device, std::span<const Resource> resources,
                            Whose whose = Whose::tenant);

    // Everything that one cell was set to, so that a change can be taken back; all `unset` where there is no row.
    struct Cell {
        Scope scope;
        std::string device;
        Resource resource;
        std::uint64_t configured = rdmaquota::unset, file = rdmaquota::unset;
        std::uint64_t soft = rdmaquota::unset, soft_file = rdmaquota::unset;
        std::uint64_t guarantee = rdmaquota::unset, guarantee_file = rdmaquota::unset;
        std::uint32_t own = 0;
    };
    Cell cell(Scope scope, std::string_view device, Resource resource) const;
    void restore(const Cell& cell) noexcept;

    // What the policy file says of a cell since it was changed: what `unset` returns to. In force is what was.
    struct Rebased {
        Resource resource;
        std::uint64_t in_file;
        std::uint32_t own;  // own_in_file, and own_in_override
    };
    Result<void> rebase(Scope scope, std::string_view device, LimitPart part, const Rebased& cell, Whose whose);

    // What all processes have by the file, for cells that the tenant's tables do not say; `everyone` has all parts.
    void rebase_everyone(const LimitsSegment& everyone) noexcept;

    // Has the rows of selectors hold for these devices, and all others for none.
    void bind(std::span<const BoundDevice> bound) noexcept;

    // Removes the rows of devices, with everything in them.
    Result<void> drop(std::span<const std::string> devices);

    // The tenant's share of what is above it: nothing in effect is ever above it, until it is `unset`. It is the effective
    // limit where what is configured is not less and no reason holds less.
    struct Grant {
        std::string_view device;
        Resource resource;
        std::uint64_t amount;
    };
    // All of them, then one change of the generation; an error when there is no room for a device.
    Result<void> grant(std::span<const Grant> grants, std::string_view why);
    // What the cluster lets this node use, over all devices: nothing in effect is ever above it; `unset`: it does not bound that.
    Result<void> put_ceiling(Resource resource, std::uint64_t amount);
    // The same for what the tenant is to have as others free it.
    Result<void> earmark(std::span<const Grant> amounts);
    // What a device has of each resource, `unset` where that is not known: percentages are of this.
    Result<void> set_capacity(std::string_view device, const LimitRow& capacity);
    // Makes programs read their limits again.
    void bump() noexcept { changed(); }

    // Makes another limit effective, for Reason::rule, until `release`.
    Result<void> hold(Scope scope, std::string_view device, Resource resource, std::uint64_t limit, Reason reason,
                      std::string_view why);
    // What is configured, or granted, holds again.
    void release(Scope scope, std::string_view device, Resource resource) noexcept;

    // One limit that is held by a reason at present.
    struct Held {
        Scope scope;
        std::string device;
        Resource resource;
        Reason reason;
        std::uint64_t limit;
        std::uint64_t configured;  // what would be in force
        std::string why;           // not yet safe to print
        std::uint64_t since_s;     // CLOCK_REALTIME

        // Whether it is the tenant's share of what the tenants above may use, which is normal operation.
        bool is_share() const noexcept { return reason == Reason::grant || reason == Reason::cluster; }
    };

private:
    static Result<void> publish(const std::string& path, const TenantLimits& limits, const LimitsSegment* of_template);
    LimitsWriter(PolicyLock lock, std::string path, LimitsSegment limits) noexcept
        : lock_(std::move(lock)), path_(std::move(path)), limits_(std::move(limits)) {}
    LimitsRow* rows() noexcept { return const_cast<LimitsRow*>(limits_.rows()); }
    Result<std::size_t> row_to_write(Scope scope, std::string_view device);
    Result<void> replace_with(const LimitsImage& image);
    Result<void> add_rows(Scope scope, std::span<const std::string_view> devices);
    Result<void> add_missing_rows(std::span<const Grant> grants);
    Origin& origin(std::size_t row, Resource resource) noexcept;
    void lower_held(std::size_t row, Resource resource, std::uint64_t limit) noexcept;
    void configure(std::size_t row, Resource resource, std::uint64_t limit) noexcept;
    void changed() noexcept;
    std::uint64_t ceiling_of(std::size_t row, Resource resource) const noexcept;
    bool change_own(std::size_t row, Resource resource, LimitPart part, Whose whose, bool set) noexcept;
    void settle_row(std::size_t row, Resource resource) noexcept;
    void settle_below(std::size_t row, Resource resource) noexcept;
    void store_part(LimitPart part, std::size_t row, Resource resource, std::uint64_t amount) noexcept;

    PolicyLock lock_;
    std::string path_;
    LimitsSegment limits_;
};

// All limits that are held, of a segment with all parts.
std::vector<LimitsWriter::Held> held_limits(const LimitsSegment& limits);

// How many of them are not as configured: all but shares.
std::size_t count_changed(const std::vector<LimitsWriter::Held>& held) noexcept;

// Whether the policy file, `set` or a reason names the device in this segment with all parts. A row that has a share only is
// not named.
bool is_configured(const LimitsSegment& limits, Scope scope, std::string_view device);

// What is configured at present for the tenant itself, or by the policy file, of a segment with all parts.
LimitsByScope configured_limits(const LimitsSegment& limits);
LimitsByScope limits_in_file(const LimitsSegment& limits);

// Whether something was set for the tenant of a template itself, or stands in its own table: of a segment with all parts.
bool has_own_limits(const LimitsSegment& limits) noexcept;

}  // namespace rdmaquota
