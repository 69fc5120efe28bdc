// The wrapped ops, by object. Each file ends with its table; provider/adopt.cpp installs them all, and
// test/unit/wrap_test.cpp checks that they are those that provider/op_list.hpp says.
#pragma once

#include <array>
#include <span>

#include "provider/wrap.hpp"

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

}  // namespace rdmaquota::provider
