// The wrapped ops, one file per object; each file ends with its table. provider/adoption/adopt.cpp installs them all.
// test/unit/provider/wrap_test.cpp checks them against provider/abi/op_list.hpp.
#pragma once

#include <array>
#include <span>

#include "provider/ops/wrap.hpp"

namespace rdmaquota::provider {

std::span<const Wrapper> pd_ops() noexcept;
std::span<const Wrapper> mr_ops() noexcept;
std::span<const Wrapper> mw_ops() noexcept;
std::span<const Wrapper> cq_ops() noexcept;
std::span<const Wrapper> qp_ops() noexcept;
std::span<const Wrapper> srq_ops() noexcept;
std::span<const Wrapper> wq_ops() noexcept;
std::span<const Wrapper> ah_ops() noexcept;
std::span<const Wrapper> flow_ops() noexcept;
std::span<const Wrapper> dm_ops() noexcept;
std::span<const Wrapper> context_ops() noexcept;
std::span<const Wrapper> device_ops() noexcept;

inline auto all_ops() noexcept {
    return std::array{pd_ops(), mr_ops(), mw_ops(),   cq_ops(), qp_ops(),      srq_ops(),
                      wq_ops(), ah_ops(), flow_ops(), dm_ops(), context_ops(), device_ops()};
}

// One kernel object of a type.
constexpr Amounts one(Resource resource) noexcept { return Amounts{}.add(resource, 1).add(Resource::hca_object, 1); }

// The costs of objects that more than one call creates: what the program asked for, even when the provider rounds it
// up. Receive requests of a QP with an SRQ are the SRQ's.
inline Amounts qp_cost(const ibv_qp_cap& cap, bool has_srq) noexcept {
    return one(Resource::qp)
        .add(Resource::send_wr, cap.max_send_wr)
        .add(Resource::recv_wr, has_srq ? 0 : cap.max_recv_wr);
}
constexpr Amounts cq_cost(std::uint32_t entries) noexcept { return one(Resource::cq).add(Resource::cqe, entries); }
inline Amounts wq_cost(const ibv_wq_init_attr& attr) noexcept {
    return one(Resource::wq).add(Resource::recv_wr, attr.max_wr);
}
inline Amounts dm_cost(const ibv_alloc_dm_attr& attr) noexcept {
    return one(Resource::dm).add(Resource::dm_bytes, attr.length);
}

}  // namespace rdmaquota::provider
