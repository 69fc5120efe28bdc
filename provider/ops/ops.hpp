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

// The size of a QP: what the program asked for, even when the provider rounds it up. Receive requests of a QP with an
// SRQ are the SRQ's.
inline std::uint64_t qp_size(const ibv_qp_cap& cap, bool has_srq) noexcept {
    return requests(cap.max_send_wr, has_srq ? 0 : cap.max_recv_wr);
}

}  // namespace rdmaquota::provider
