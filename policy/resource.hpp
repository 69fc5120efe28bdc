// The quantities that a quota can limit.
//
// One row per resource in RDMAQUOTA_RESOURCES; everything else (enum, CLI, policy file, ledger rows)
// follows from it. The order is the storage order in the shared segments: the eight that a QP, CQ
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

enum class Resource : std::uint8_t {
#define RDMAQUOTA_ENUM(name, unit, counts) name,
    RDMAQUOTA_RESOURCES(RDMAQUOTA_ENUM)
#undef RDMAQUOTA_ENUM
};

struct ResourceInfo {
    Resource id;
    std::string_view name;
    Unit unit;
    std::string_view counts;
};

inline constexpr std::array resource_table{
#define RDMAQUOTA_ROW(name, unit, counts) ResourceInfo{Resource::name, #name, Unit::unit, counts},
    RDMAQUOTA_RESOURCES(RDMAQUOTA_ROW)
#undef RDMAQUOTA_ROW
};
inline constexpr std::size_t resource_count = resource_table.size();

constexpr std::size_t index(Resource resource) noexcept { return static_cast<std::size_t>(resource); }

constexpr const ResourceInfo& info(Resource resource) noexcept { return resource_table[index(resource)]; }

constexpr std::optional<Resource> find_resource(std::string_view name) noexcept {
    for (const auto& row : resource_table)
        if (row.name == name) return row.id;
    return std::nullopt;
}

}  // namespace rdmaquota
