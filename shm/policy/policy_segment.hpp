// The compiled policy: one file that root writes and every application maps read-only.
//
//   byte 0      magic, layout_version, file_bytes
//        24     generation, superseded, mode, on_unavailable, deny_errno, log…, clamp_device_attr, id
//       320     process rows   (row_count × 256 bytes)
//               tenant rows    (row_count × 256 bytes)
//     17728     the sidecar's part, see shm/policy/compiled_sidecar.hpp
//
// A row is a device name and one limit per resource. `generation` goes up after each change of limits: readers look at
// it at every charge, so that a change is live at once, and at nothing else meanwhile. All words are single atomics. A
// new row is filled in before the first byte of its name is published.
// The row's last slot says which of its limits an administrator set (`rdmaquota set`), as an active-low mask: a clear
// bit means that one did. Applications do not read it.
// A whole new policy is a new file with another `id`, renamed over the old one, whose `superseded` word then becomes
// 1, and its generation one that no other has: readers open the path again.
// This header is the readers' side; shm/policy/policy_writer.hpp changes and replaces policies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "shm/atomic.hpp"
#include "shm/mapping.hpp"
#include "shm/policy/compiled_sidecar.hpp"

namespace rdmaquota {

inline constexpr std::uint64_t policy_magic = 0x31594c50'51414d52;  // "RMAQPLY1", little-endian
inline constexpr std::uint32_t policy_layout_version = 3;
inline constexpr std::size_t resource_slots = 24;  // room for resources in every row, 3 cache lines
inline constexpr std::size_t note_slot = resource_slots - 1;
inline constexpr std::size_t policy_rows = 34;  // 32 devices and ports, "*" and "total"

struct PolicyRow {
    char device[device_name_bytes];        // NUL-terminated; empty: this and later rows are unused
    std::uint64_t limits[resource_slots];  // `unset` where nothing is said
};
static_assert(sizeof(PolicyRow) == 256);

struct PolicyImage {
    std::uint64_t magic;
    std::uint32_t layout_version;
    std::uint32_t file_bytes;
    std::uint64_t generation;
    std::uint32_t superseded;
    std::uint32_t mode;
    std::uint32_t on_unavailable;
    std::uint32_t deny_errno;
    std::uint32_t log_level;
    std::uint32_t log_target;
    char log_file[256];
    std::uint32_t clamp_device_attr;
    std::uint32_t reserved0;
    std::uint64_t id;
    PolicyRow process[policy_rows];
    PolicyRow tenant[policy_rows];
    CompiledSidecar sidecar;
};
static_assert(offsetof(PolicyImage, process) == 320);
static_assert(offsetof(PolicyImage, sidecar) == 320 + 2 * policy_rows * sizeof(PolicyRow));

// A policy file, mapped for reading. Move-only; unmaps when destroyed.
class PolicySegment {
public:
    // Maps `path` read-only. Refuses what is not a policy of this layout version, with the path and the remedy in
    // the message.
    static Result<PolicySegment> open(const std::string& path) { return open(path, false); }

    const PolicyImage& image() const noexcept { return *static_cast<const PolicyImage*>(mapping_.address()); }

    // Goes up with every change of limits; `lost_generation` once the policy was replaced or its file cut short.
    static constexpr std::uint64_t lost_generation = UINT64_MAX;
    const std::uint64_t& generation_word() const noexcept { return image().generation; }
    std::uint64_t generation() const noexcept { return load(image().generation); }
    // Differs between any two published policies; 0 for one that an older rdmaquota published.
    std::uint64_t id() const noexcept { return image().id; }
    // True when there may be another policy at the path: this one was replaced, or its file was cut short. The limits
    // of a file that was cut short stay as they were when it was opened.
    bool superseded() const noexcept { return load(image().superseded) != 0 || mapping_.lost(); }
    // Values that this version does not know read as enforce.
    Mode mode() const noexcept {
        const auto mode = load(image().mode);
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

    // The row of exactly this name, or nullptr. Valid while the segment is mapped.
    const PolicyRow* row(Scope scope, std::string_view device) const noexcept;

    // The limit that holds for `device`: its own row's, else that of the row "*" unless `device` is a port, else
    // unlimited. Not for "total".
    std::uint64_t limit(Scope scope, std::string_view device, Resource resource) const noexcept;

    // The policy as it is now, for writing it back to a file.
    Policy decompile() const;

private:
    friend class PolicyWriter;
    static Result<PolicySegment> open(const std::string& path, bool writable);
    explicit PolicySegment(Mapping mapping) noexcept : mapping_(std::move(mapping)) {}
    Mapping mapping_;
};

// The rows of one scope in a const or writable image.
template <class Image>
auto& rows_of(Image& image, Scope scope) noexcept {
    return scope == Scope::process ? image.process : image.tenant;
}

// The device name of a row; empty when the row is unused.
std::string_view device_of(const PolicyRow& row) noexcept;

// One limit cell of a mapped row, read as an atomic; `unset` for a null row.
std::uint64_t load_limit(const PolicyRow* row, Resource resource) noexcept;

}  // namespace rdmaquota
