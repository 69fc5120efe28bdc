// A tenant's limits: one file that root writes and the tenant's programs map read-only.
//
//   +0      LimitsHeader            what else holds for programs: mode, errno, log
//   +512    LimitsRow[row_count]    what holds now: effective and soft limits, and why
//   then    OriginRow[row_count]    where it comes from: for tools only, and not mapped by programs
//
// A row is a scope, a device name and one limit per resource. A limit has two values. What is *configured* comes from
// the policy file or from `rdmaquota set`. What is *effective* holds now: the same, unless the tenant's share of what is
// above it in the tree is less, or a dynamic rule makes it another one meanwhile. So what is
// configured is never forgotten, and a denial can say why a limit holds.
// A limit in percent (policy/limit.hpp) stays one in these words. Rows of the scope `capacity_scope` have the capacity of each
// device that a command or the sidecar has asked; by them `limit` and the others below resolve percentages.
// `generation` goes up after each change: readers look at it at every charge, so that a change is live at once, and at
// nothing else meanwhile. All words are single atomics.
// Where a change needs another row or another header, a new file with another `id` is renamed over the old one, whose
// `superseded` word then becomes 1, and its generation one that no other has: readers open the path again.
// This header is the readers' side; shm/policy/limits_writer.hpp changes and replaces.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/limit_key.hpp"
#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "policy/uverbs.hpp"
#include "shm/atomic.hpp"
#include "shm/mapping.hpp"

namespace rdmaquota {

inline constexpr std::uint64_t limits_magic = 0x314d494c'51414d52;  // "RMAQLIM1", little-endian
inline constexpr std::size_t resource_slots = 24;  // room for resources in every row, 3 cache lines
static_assert(limit_count <= resource_slots);
inline constexpr std::size_t most_limit_rows = 66;  // of a scope: 64 devices and ports, "*" and "total"

// Of rows that say what a device has: `effective` and `configured`, by resource. Not a scope of limits.
inline constexpr auto capacity_scope = static_cast<Scope>(scope_count);
// Of the row "total" that says what the cluster lets this node use: `effective`, and in `configured` what that is before the cluster
// has said anything. Not a scope of limits.
inline constexpr auto ceiling_scope = static_cast<Scope>(scope_count + 1);

struct LimitsHeader {
    std::uint64_t magic;
    std::uint32_t layout_version;
    std::uint32_t row_count;
    std::uint64_t generation;
    std::uint64_t id;
    std::uint32_t superseded;
    std::uint32_t mode;
    std::uint32_t on_unavailable;
    std::uint32_t deny_errno;
    std::uint32_t log_level;
    std::uint32_t log_target;
    std::uint32_t clamp_device_attr;
    std::uint32_t weight;
    std::uint32_t grace_s;
    std::uint32_t grant_wait_plus_1;  // ms; 0, as version 0.1 left it, is the default
    char tenant[tenant_name_bytes];  // as it is shown, NUL-terminated
    char log_file[256];
    std::uint32_t hides_devices;
    std::uint32_t max_delay_ms;  // of rates
    std::uint64_t reserved[6];
};
static_assert(sizeof(LimitsHeader) == 512);

struct DeviceText {
    char text[device_name_bytes];  // NUL-terminated
};

struct LimitsRow {
    char device[device_name_bytes];  // NUL-terminated; a name or a selector
    std::uint32_t scope;             // Scope
    std::uint32_t uverbs_plus_1;     // of a selector: the uverbs device that it selects; 0: none
    std::uint8_t reason[resource_slots];     // Reason
    DeviceText bound_name;                   // of a selector: the present name of that device or port
    std::uint64_t reserved[4];
    std::uint64_t effective[resource_slots];  // `unset` where this row says nothing
    std::uint64_t soft[resource_slots];
};
static_assert(sizeof(LimitsRow) == 576);

// An amount in a word that version 0.1 left 0, or to the end of a reason: 0 is `unset`.
struct LaterAmount {
    std::uint64_t word = 0;
};
inline std::uint64_t load(const LaterAmount& amount) noexcept { return load(amount.word) + unset; }
inline void store(LaterAmount& amount, std::uint64_t value) noexcept { store(amount.word, value - unset); }

// Where one limit comes from. Its size is the same as in version 0.1, whose programs refuse a file of another.
struct Origin {
    std::uint64_t configured;  // `unset` where this row says nothing
    std::uint64_t file;        // what it was when the policy was published, and is again after `rdmaquota unset`
    std::uint64_t since_s;     // CLOCK_REALTIME; since when the reason has held
    std::uint32_t own;         // whose it is, see own_in_file; the limit's bits are 0: from [process], or of nobody
    float earmarked;           // what goes to the tenant as others free it; to be shown only, as it has 24 bits
    char why[64];  // the reason in words, NUL-terminated; not yet safe to print
    LaterAmount granted;         // the share of what is above; `unset`: nothing above bounds it
    LaterAmount guarantee;       // `unset` where this row says nothing, as the next two
    LaterAmount guarantee_file;  // as `file`
    LaterAmount soft_file;
};
static_assert(sizeof(Origin) == 128);

// Bits: the tenant's own tables in the policy file, or its template's, say it; it was set for this tenant since; for its template;
// and a table of the tenant of a template says it, which overrides that of the template.
inline constexpr std::uint32_t own_in_file = 1, own_by_set = 2, own_by_template = 4, own_in_override = 8;
// The bits of a guarantee and of a soft limit lie so much higher. Those have no own_in_file.
constexpr unsigned own_shift(LimitPart part) noexcept {
    return part == LimitPart::guarantee ? 8 : part == LimitPart::soft ? 16 : 0;
}
inline std::uint32_t own_of(const Origin& origin, LimitPart part = LimitPart::limit) noexcept {
    return load(origin.own) >> own_shift(part) & 0xff;
}
inline void set_own(Origin& origin, LimitPart part, std::uint32_t bits) noexcept {
    store(origin.own, (load(origin.own) & ~(0xffU << own_shift(part))) | bits << own_shift(part));
}
// A cell with one of these bits keeps its value when the template's is changed.
inline constexpr std::uint32_t own_alone = own_by_set | own_in_override;

struct OriginRow {
    Origin of[resource_slots];
};

const LimitsRow* find_row(const LimitsRow* rows, std::size_t count, Scope scope, DeviceKey device) noexcept;
// As LimitsSegment::capacity.
std::uint64_t find_capacity(const LimitsRow* rows, std::size_t count, DeviceKey device, Resource resource) noexcept;

// A file of limits, mapped for reading. Move-only; unmaps when destroyed.
class LimitsSegment {
public:
    enum class Parts : std::uint8_t { effective, all };

    // Maps `path` read-only; without its origins unless asked for. Refuses what is not a file of limits of this layout
    // version, with the path and the remedy in the message.
    static Result<LimitsSegment> open(const std::string& path, Parts parts = Parts::effective) {
        return open(path, parts, false);
    }

    const LimitsHeader& header() const noexcept { return *static_cast<const LimitsHeader*>(mapping_.address()); }

    // Goes up with every change of limits; `lost_generation` once the file was replaced or cut short.
    static constexpr std::uint64_t lost_generation = UINT64_MAX;
    const std::uint64_t& generation_word() const noexcept { return header().generation; }
    std::uint64_t generation() const noexcept { return load(header().generation); }
    // Differs between any two published files.
    std::uint64_t id() const noexcept { return header().id; }
    // True when there may be another file at the path: this one was replaced, or cut short. The limits of a file that
    // was cut short stay as they were when it was opened.
    bool superseded() const noexcept { return load(header().superseded) != 0 || mapping_.lost(); }
    // Values that this version does not know read as enforce.
    Mode mode() const noexcept {
        const auto mode = load(header().mode);
        return mode <= static_cast<std::uint32_t>(Mode::off) ? static_cast<Mode>(mode) : Mode::enforce;
    }
    Unavailable on_unavailable() const noexcept;
    // Whether an object that cannot be counted is denied; only while limits are enforced.
    bool denies_uncounted() const noexcept { return on_unavailable() == Unavailable::deny && mode() == Mode::enforce; }
    int deny_errno() const noexcept;  // always one of EDQUOT, EAGAIN, ENOMEM
    bool clamp_device_attr() const noexcept;
    LogLevel log_level() const noexcept;
    LogTarget log_target() const noexcept;
    std::string log_file() const;
    std::string tenant() const;
    // Whether the tenant's programs do not list a device on which its limit of hca_handle is 0.
    bool hides_devices() const noexcept { return load(header().hides_devices) != 0; }
    std::uint32_t weight() const noexcept { return header().weight; }

    // The row of exactly this name, else that of a selector that selects the device, or nullptr. Valid while the segment is mapped.
    const LimitsRow* row(Scope scope, DeviceKey device) const noexcept { return find_row(rows(), row_count_, scope, device); }
    std::vector<std::string> devices(Scope scope) const;  // of all rows, in their order; selectors by what they select
    // The origins of the limits in one of this segment's rows. This and the next function need Parts::all.
    const OriginRow& origins_of(const LimitsRow& row) const noexcept { return origins()[&row - rows()]; }
    // Calls `visit` with the device, the row and the origins of each of `devices`, but for one that has just been renamed.
    template <class Visit>
    void for_each_row(Scope scope, Visit visit) const {
        for (const auto& device : devices(scope))
            if (const auto* found = row(scope, device)) visit(device, *found, origins_of(*found));
    }
    std::set<std::string> selectors() const;

    // What there is of a resource with has_capacity on `device`, a device or port of one, or in the node's memory; 0: not known.
    std::uint64_t capacity(DeviceKey device, Resource resource) const noexcept {
        return find_capacity(rows(), row_count_, device, resource);
    }
    // What a limit of these rows is on `device`: itself, or the amount that a percentage stands for; `unlimited` while the device's
    // capacity is not known.
    std::uint64_t amount(std::uint64_t limit, DeviceKey device, Resource resource) const noexcept {
        return is_percentage(limit) ? amount_of(limit, capacity(device, resource)) : limit;
    }
    // What is configured for `device` as it was written, which may be a percentage: by its own row, else by "*"; `unset` where neither
    // says anything. Needs Parts::all unless `part` is soft.
    std::uint64_t as_written(LimitPart part, Scope scope, DeviceKey device, Resource resource) const noexcept;
    // Whether some limit is a percentage. Needs Parts::all.
    bool has_percentages() const noexcept;

    // The limit that holds for `device`: its own row's, else that of the row "*" unless `device` is a port or "total",
    // else unlimited.
    std::uint64_t limit(Scope scope, DeviceKey device, Resource resource) const noexcept;
    // Why that limit holds.
    Reason reason(Scope scope, DeviceKey device, Resource resource) const noexcept;
    // The soft limit, as `limit`, and the burst of a rate; `unlimited` where there is none, and no soft limit is for "total".
    std::uint64_t soft(DeviceKey device, Resource resource) const noexcept;
    std::uint64_t max_delay_ns() const noexcept { return max_delay_ms() * std::uint64_t{1'000'000}; }
    std::uint32_t max_delay_ms() const noexcept { return std::min(load(header().max_delay_ms), most_max_delay_ms); }
    std::uint32_t grace_s() const noexcept { return load(header().grace_s); }
    std::uint32_t grant_wait_ms() const noexcept;
    // What would be in force without any reason. Needs Parts::all, as the next.
    std::uint64_t configured(Scope scope, DeviceKey device, Resource resource) const noexcept;
    const Origin* origin(Scope scope, DeviceKey device, Resource resource) const noexcept;
    // What the cluster lets this node's processes of the tenant use over all devices; `unset` where it does not bound that.
    std::uint64_t ceiling(Resource resource) const noexcept { return load_limit_of(row(ceiling_scope, total_device), resource); }
    // What is reserved for the tenant, 0 for nothing; and its share, `unset` where nothing above bounds it.
    std::uint64_t guarantee(DeviceKey device, Resource resource) const noexcept;
    std::uint64_t granted(DeviceKey device, Resource resource) const noexcept;
    // What it asked for and is to have as others, who use more than their shares, free it; six digits of it are exact.
    std::uint64_t earmarked(DeviceKey device, Resource resource) const noexcept;
    // All of that for a device at once; `limit` is the one configured, or a dynamic rule's where that is less.
    struct ShareFigures {
        std::uint64_t limit, guarantee, granted, earmarked;
    };
    std::array<ShareFigures, limit_count> share_figures(DeviceKey device) const noexcept;

private:
    friend class LimitsWriter;
    static Result<LimitsSegment> open(const std::string& path, Parts parts, bool writable);
    explicit LimitsSegment(Mapping mapping, bool all) noexcept : mapping_(std::move(mapping)), all_(all) {}
    const LimitsRow* rows() const noexcept { return reinterpret_cast<const LimitsRow*>(&header() + 1); }
    const OriginRow* origins() const noexcept;
    static std::uint64_t load_limit_of(const LimitsRow* row, Resource resource) noexcept;
    std::uint64_t known_guarantee(std::uint64_t written, DeviceKey device, Resource resource) const noexcept;
    std::uint32_t row_count() const noexcept { return row_count_; }

    Mapping mapping_;
    std::uint32_t row_count_ = 0;  // read once
    bool all_ = false;
};

constexpr std::size_t limits_bytes(std::size_t rows, LimitsSegment::Parts parts) noexcept {
    return sizeof(LimitsHeader) +
           rows * (sizeof(LimitsRow) + (parts == LimitsSegment::Parts::all ? sizeof(OriginRow) : 0));
}

// The device name or selector of a row; and the name of what it holds for at present, the same unless it is a bound selector.
std::string_view device_of(const LimitsRow& row) noexcept;
std::string present_name_of(const LimitsRow& row);

// One effective limit of a mapped row, read as an atomic; `unset` for a null row.
std::uint64_t load_limit(const LimitsRow* row, Resource resource) noexcept;
// Why it is what it is. Values that this version does not know read as Reason::other.
Reason load_reason(const LimitsRow* row, Resource resource) noexcept;

}  // namespace rdmaquota
