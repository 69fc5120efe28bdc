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

// Two threads at once write the same twice. The number of QPs says that all the others are there.
void DeviceReport::ask() noexcept {
    const NoCancellation guard;
    const KeepErrno keep;
    const std::unique_ptr<ibv_device_attr_ex> attr(new (std::nothrow) ibv_device_attr_ex());
    if (!attr || query(*attr) != 0) return;
    for (const auto& [resource, member] : device_maxima) {
        const int most = attr->orig_attr.*member;
        most_[index(resource)] = most > 0 ? static_cast<std::uint64_t>(most) : 0;
    }
}

}  // namespace rdmaquota::provider
