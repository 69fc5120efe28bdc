// The records of the node's compiled policy, see shm/policy/node_policy.hpp. Data only.
//
//   byte 0      NodeHeader, 104 bytes
//       104     CompiledTenant[tenant_count], 32 bytes each, in the order of the policy
//               CompiledMatch[match_count], 64 bytes each, in the order in which they are tried
//               CompiledSidecar, see shm/policy/compiled_sidecar.hpp
//               text_bytes of text
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>

#include "shm/policy/compiled_sidecar.hpp"
#include "shm/policy/node_policy.hpp"

namespace rdmaquota {

inline constexpr std::uint64_t node_policy_magic = 0x31444f4e'51414d52;    // "RMAQNOD1", little-endian
inline constexpr std::size_t largest_node_policy = std::size_t{64} << 20;  // bytes

// A part of the text.
struct TextSpan {
    std::uint32_t offset;
    std::uint32_t length;
};

struct NodeHeader {
    // Bits of `flags`.
    static constexpr std::uint32_t asks_for_ids = 1, asks_for_cgroup = 2, hides_devices = 4;

    std::uint64_t magic;
    std::uint32_t layout_version;
    std::uint32_t file_bytes;
    std::uint64_t id;
    std::uint32_t tenant_count;
    std::uint32_t match_count;
    std::uint32_t text_bytes;
    std::uint32_t flags;
    std::uint32_t mode;
    std::uint32_t on_unavailable;
    std::uint32_t deny_errno;
    std::uint32_t clamp_device_attr;
    std::uint32_t log_level;
    std::uint32_t log_target;
    TextSpan log_file;
    std::uint64_t grant_wait_plus_1;  // as in LimitsHeader
    TextSpan metrics;  // as compile_metrics() writes it; no text: the defaults
    std::uint64_t reserved[2];
};
static_assert(sizeof(NodeHeader) == 104 && offsetof(NodeHeader, metrics) == 80);

struct CompiledTenant {
    // Bits of `flags`.
    static constexpr std::uint32_t has_mode = 1, has_deny_errno = 2, has_grace = 4, transient = 8, is_override = 16,
                                   hides_devices = 32;

    TextSpan name;
    std::uint32_t flags;
    std::uint32_t mode;
    std::uint32_t deny_errno;
    std::uint32_t weight;
    std::uint32_t grace_s;
    std::uint32_t max_delay_plus_1;  // ms; 0: its parent's
};
static_assert(sizeof(CompiledTenant) == 32);

// What is compared first comes first. Which conditions there are is in `flags`, not in the strings.
struct CompiledMatch {
    // Bits of `flags`.
    static constexpr std::uint32_t by_user = 1, by_group = 2, by_cgroup = 4, by_unit = 8;
    static constexpr std::uint32_t unknown_user = 16, unknown_group = 32;
    static constexpr std::uint32_t bound = 64;

    std::uint32_t flags;
    std::uint32_t user;
    std::uint32_t group;
    std::uint32_t tenant;  // index of its record
    std::uint32_t entry;   // in the tenant's list, from 0
    std::uint32_t reserved;
    TextSpan cgroup;
    TextSpan unit;
    TextSpan user_name;  // as written
    TextSpan group_name;
    TextSpan members;  // each is a MemberMark and the name, and ends with a NUL
};
static_assert(sizeof(CompiledMatch) == 64 && offsetof(CompiledMatch, cgroup) == 24);

// In front of each member's name.
enum class MemberMark : char { known = '+', unknown = '?' };

static_assert(sizeof(CompiledSidecar) % 8 == 0);

// A whole file in memory, whose counts and spans were checked.
struct NodePolicy::Image {
    std::unique_ptr<std::byte[]> bytes;

    const NodeHeader& header() const noexcept { return *at<NodeHeader>(0); }
    std::span<const CompiledTenant> tenants() const noexcept {
        return {at<CompiledTenant>(sizeof(NodeHeader)), header().tenant_count};
    }
    std::span<const CompiledMatch> matches() const noexcept {
        return {at<CompiledMatch>(matches_offset()), header().match_count};
    }
    const CompiledSidecar& sidecar() const noexcept { return *at<CompiledSidecar>(sidecar_offset()); }
    std::string_view text(TextSpan span) const noexcept {
        return {at<char>(sidecar_offset() + sizeof(CompiledSidecar)) + span.offset, span.length};
    }
    // Whether the policy has a tenant of this name that is not a template's.
    bool names_tenant(std::string_view name) const noexcept {
        for (const auto& tenant : tenants())
            if (text(tenant.name) == name) return (tenant.flags & CompiledTenant::is_override) == 0;
        return false;
    }

private:
    std::size_t matches_offset() const noexcept {
        return sizeof(NodeHeader) + header().tenant_count * sizeof(CompiledTenant);
    }
    std::size_t sidecar_offset() const noexcept {
        return matches_offset() + header().match_count * sizeof(CompiledMatch);
    }
    template <class T>
    const T* at(std::size_t offset) const noexcept {
        return reinterpret_cast<const T*>(bytes.get() + offset);
    }
};

}  // namespace rdmaquota
