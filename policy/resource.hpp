// The quantities that a quota can limit: resources, of which a ledger counts what is in use, and rates, which have an amount a
// second instead.
//
// One row each in RDMAQUOTA_RESOURCES and RDMAQUOTA_RATES; everything else (enum, CLI, policy file, ledger rows)
// follows from them. The order is the storage order in the shared segments: the eight that a QP, CQ
// or MR creation touches share one 64-byte cache line. A change of the order changes the segments' layout
// version; one more at the end does not while there is room (resource_slots).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rdmaquota {

enum class Unit : std::uint8_t { count, bytes };

// X(name, unit, counts): the name in the policy file, on the command line and in JSON; what one unit
// stands for, one line.
#define RDMAQUOTA_RESOURCES(X) \
    X(hca_object, count, "kernel objects of any type") \
    X(qp, count, "queue pairs of every type") \
    X(send_wr, count, "send work requests asked for at QP creation") \
    X(recv_wr, count, "receive work requests asked for at QP or WQ creation") \
    X(mr, count, "memory regions") \
    X(mr_bytes, bytes, "bytes pinned by memory regions") \
    X(cq, count, "completion queues") \
    X(cqe, count, "completion queue entries asked for") \
    X(hca_handle, count, "open device contexts") \
    X(pd, count, "protection domains") \
    X(srq, count, "shared receive queues") \
    X(srq_wr, count, "work requests asked for at SRQ creation") \
    X(mw, count, "memory windows") \
    X(ah, count, "address handles") \
    X(xrcd, count, "XRC domains") \
    X(wq, count, "work queues") \
    X(rwq_ind, count, "receive work queue indirection tables") \
    X(flow, count, "flow steering rules") \
    X(counters, count, "counter sets") \
    X(dm, count, "device memory allocations") \
    X(dm_bytes, bytes, "bytes of device memory")

// They come after the resources in every segment.
#define RDMAQUOTA_RATES(X) \
    X(commands_per_s, count, "creations, resizes, re-registrations and changes of QPs a second") \
    X(registered_per_s, bytes, "bytes pinned a second")

enum class Resource : std::uint8_t {
#define RDMAQUOTA_ENUM(name, unit, counts) name,
    RDMAQUOTA_RESOURCES(RDMAQUOTA_ENUM) RDMAQUOTA_RATES(RDMAQUOTA_ENUM)
#undef RDMAQUOTA_ENUM
};

struct ResourceInfo {
    Resource id;
    std::string_view name;
    Unit unit;
    std::string_view counts;
};

// What is counted, the rates, and all that can be limited: both.
#define RDMAQUOTA_ROW(name, unit, counts) ResourceInfo{Resource::name, #name, Unit::unit, counts},
inline constexpr std::array resource_table{RDMAQUOTA_RESOURCES(RDMAQUOTA_ROW)};
inline constexpr std::array rate_table{RDMAQUOTA_RATES(RDMAQUOTA_ROW)};
inline constexpr std::array limit_table{RDMAQUOTA_RESOURCES(RDMAQUOTA_ROW) RDMAQUOTA_RATES(RDMAQUOTA_ROW)};
#undef RDMAQUOTA_ROW
inline constexpr std::size_t resource_count = resource_table.size();
inline constexpr std::size_t limit_count = limit_table.size();

constexpr std::size_t index(Resource resource) noexcept { return static_cast<std::size_t>(resource); }

constexpr bool is_rate(Resource resource) noexcept { return index(resource) >= resource_count; }
// Its place in rate_table.
inline constexpr std::size_t rate_count = rate_table.size();
constexpr std::size_t rate_index(Resource rate) noexcept { return index(rate) - resource_count; }

constexpr const ResourceInfo& info(Resource resource) noexcept { return limit_table[index(resource)]; }

// By name: one that can be limited, and one that is counted.
constexpr std::optional<Resource> find_limit(std::string_view name) noexcept {
    for (const auto& row : limit_table)
        if (row.name == name) return row.id;
    return std::nullopt;
}
constexpr std::optional<Resource> find_resource(std::string_view name) noexcept {
    const auto found = find_limit(name);
    return found && !is_rate(*found) ? found : std::nullopt;
}

}  // namespace rdmaquota
