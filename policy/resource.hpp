// The quantities that a quota can limit.
//
// One row per resource in `resource_table`; everything else (CLI, policy file, ledger rows)
// follows from it. The order is the storage order in the shared segments: the eight that a QP, CQ
// or MR creation touches share one 64-byte cache line. A change of the order or number changes the
// segments' layout version.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace rdmaquota {

enum class Resource : std::uint8_t {
    hca_object,
    qp,
    send_wr,
    recv_wr,
    mr,
    mr_bytes,
    cq,
    cqe,
    hca_handle,
    pd,
    srq,
    srq_wr,
    mw,
    ah,
    xrcd,
    wq,
    rwq_ind,
    flow,
    counters,
    dm,
    dm_bytes,
};

inline constexpr std::size_t resource_count = 21;

enum class Unit : std::uint8_t { count, bytes };

struct ResourceInfo {
    Resource id;
    std::string_view name;  // the name in the policy file, on the command line and in JSON
    Unit unit;
    std::string_view counts;  // what one unit stands for, one line
};

inline constexpr std::array<ResourceInfo, resource_count> resource_table{{
    {Resource::hca_object, "hca_object", Unit::count, "kernel objects of any type"},
    {Resource::qp, "qp", Unit::count, "queue pairs of every type"},
    {Resource::send_wr, "send_wr", Unit::count, "send work requests asked for at QP creation"},
    {Resource::recv_wr, "recv_wr", Unit::count, "receive work requests asked for at QP or WQ creation"},
    {Resource::mr, "mr", Unit::count, "memory regions"},
    {Resource::mr_bytes, "mr_bytes", Unit::bytes, "bytes pinned by memory regions"},
    {Resource::cq, "cq", Unit::count, "completion queues"},
    {Resource::cqe, "cqe", Unit::count, "completion queue entries asked for"},
    {Resource::hca_handle, "hca_handle", Unit::count, "open device contexts"},
    {Resource::pd, "pd", Unit::count, "protection domains"},
    {Resource::srq, "srq", Unit::count, "shared receive queues"},
    {Resource::srq_wr, "srq_wr", Unit::count, "work requests asked for at SRQ creation"},
    {Resource::mw, "mw", Unit::count, "memory windows"},
    {Resource::ah, "ah", Unit::count, "address handles"},
    {Resource::xrcd, "xrcd", Unit::count, "XRC domains"},
    {Resource::wq, "wq", Unit::count, "work queues"},
    {Resource::rwq_ind, "rwq_ind", Unit::count, "receive work queue indirection tables"},
    {Resource::flow, "flow", Unit::count, "flow steering rules"},
    {Resource::counters, "counters", Unit::count, "counter sets"},
    {Resource::dm, "dm", Unit::count, "device memory allocations"},
    {Resource::dm_bytes, "dm_bytes", Unit::bytes, "bytes of device memory"},
}};

constexpr std::size_t index(Resource resource) noexcept { return static_cast<std::size_t>(resource); }

constexpr const ResourceInfo& info(Resource resource) noexcept { return resource_table[index(resource)]; }

constexpr std::optional<Resource> find_resource(std::string_view name) noexcept {
    for (const auto& row : resource_table)
        if (row.name == name) return row.id;
    return std::nullopt;
}

namespace detail {
constexpr bool table_is_in_order() noexcept {
    for (std::size_t i = 0; i < resource_count; ++i)
        if (index(resource_table[i].id) != i) return false;
    return true;
}
static_assert(table_is_in_order(), "resource_table must list the resources in enum order");
}  // namespace detail

}  // namespace rdmaquota
