#include "provider/charging/device_report.hpp"

#include <cerrno>
#include <memory>
#include <new>

#include "provider/host/cancellation.hpp"
#include "provider/host/keep_errno.hpp"

namespace rdmaquota::provider {

std::uint64_t DeviceReport::capacity(const LimitsSegment& policy, DeviceKey device, Resource resource) noexcept {
    if (const auto known = policy.capacity(device, resource); known != 0) return known;
    if (most_[index(Resource::qp)] == 0) ask();
    return most_[index(resource)];
}

int DeviceReport::query(ibv_device_attr_ex& attr) const noexcept {
    const auto real = reinterpret_cast<int (*)(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex*, std::size_t)>(query_);
    if (real == nullptr) return ENOSYS;
    const int status = real(verbs_, nullptr, &attr, sizeof attr);
    return status < 0 ? errno : status;
}

// By two threads at once the same is written twice.
void DeviceReport::ask() noexcept {
    const NoCancellation guard;
    const KeepErrno keep;
    const std::unique_ptr<ibv_device_attr_ex> all(new (std::nothrow) ibv_device_attr_ex());
    if (!all || query(*all) != 0) return;
    const auto& attr = all->orig_attr;
    const auto note = [&](Resource resource, int most) { most_[index(resource)] = most > 0 ? static_cast<std::uint64_t>(most) : 0; };
    note(Resource::cq, attr.max_cq);
    note(Resource::mr, attr.max_mr);
    note(Resource::pd, attr.max_pd);
    note(Resource::mw, attr.max_mw);
    note(Resource::ah, attr.max_ah);
    note(Resource::srq, attr.max_srq);
    note(Resource::qp, attr.max_qp);
}

}  // namespace rdmaquota::provider
