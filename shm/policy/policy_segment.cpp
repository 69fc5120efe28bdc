#include "shm/policy/policy_segment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "shm/atomic.hpp"

namespace rdmaquota {
namespace {

Error no_policy(const std::string& path, const std::string& why) {
    return {fmt::format("cannot use the policy {}: {}; run 'rdmaquota reload' as root to write it", path, why)};
}

ScopeLimits decompile_rows(const PolicyRow (&rows)[policy_rows]) {
    ScopeLimits scope;
    for (const auto& row : rows) {
        if (device_of(row).empty()) break;
        if (!valid_device(device_of(row))) continue;
        auto& limits = row_for(scope, device_of(row));
        for (std::size_t i = 0; i < resource_count; ++i) limits[i] = load(row.limits[i]);
    }
    return scope;
}

}  // namespace

std::string_view device_of(const PolicyRow& row) noexcept {
    return {row.device, strnlen(row.device, sizeof row.device)};
}

std::uint64_t load_limit(const PolicyRow* row, Resource resource) noexcept {
    return row ? std::atomic_ref<std::uint64_t>(const_cast<PolicyRow*>(row)->limits[index(resource)])
                     .load(std::memory_order_relaxed)
               : unset;
}

Result<PolicySegment> PolicySegment::open(const std::string& path, bool writable) {
    const int fd = ::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return no_policy(path, std::strerror(errno));
    struct stat status {};
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_size != static_cast<off_t>(sizeof(PolicyImage))) {
        close(fd);
        return no_policy(path, fmt::format("it has {} bytes instead of {}", status.st_size, sizeof(PolicyImage)));
    }
    auto mapping = Mapping::map(fd, sizeof(PolicyImage), writable, Mapping::AfterLoss::as_mapped);
    const int error = errno;
    close(fd);
    if (!mapping) return no_policy(path, std::strerror(error));

    PolicySegment segment(std::move(mapping));
    if (segment.image().magic != policy_magic || segment.image().file_bytes != sizeof(PolicyImage))
        return no_policy(path, "it is not a compiled policy");
    if (segment.image().layout_version != policy_layout_version)
        return no_policy(path, fmt::format("its layout version is {}, this rdmaquota needs {}",
                                           segment.image().layout_version, policy_layout_version));
    if (auto* copy = static_cast<PolicyImage*>(segment.mapping_.shown_after_loss())) copy->generation = lost_generation;
    return segment;
}

Unavailable PolicySegment::on_unavailable() const noexcept {
    return load(image().on_unavailable) == static_cast<std::uint32_t>(Unavailable::deny) ? Unavailable::deny
                                                                                         : Unavailable::allow;
}

int PolicySegment::deny_errno() const noexcept {
    const auto number = static_cast<int>(load(image().deny_errno));
    return number == EAGAIN || number == ENOMEM ? number : EDQUOT;
}

bool PolicySegment::clamp_device_attr() const noexcept { return load(image().clamp_device_attr) != 0; }

LogLevel PolicySegment::log_level() const noexcept {
    return static_cast<LogLevel>(std::min(load(image().log_level), static_cast<std::uint32_t>(LogLevel::debug)));
}

LogTarget PolicySegment::log_target() const noexcept {
    return static_cast<LogTarget>(std::min(load(image().log_target), static_cast<std::uint32_t>(LogTarget::file)));
}

std::string PolicySegment::log_file() const {
    return {image().log_file, strnlen(image().log_file, sizeof image().log_file)};
}

const PolicyRow* PolicySegment::row(Scope scope, std::string_view device) const noexcept {
    for (const auto& row : rows_of(image(), scope)) {
        if (device_of(row).empty()) return nullptr;
        if (device_of(row) == device) return &row;
    }
    return nullptr;
}

std::uint64_t PolicySegment::limit(Scope scope, std::string_view device, Resource resource) const noexcept {
    const auto own = load_limit(row(scope, device), resource);
    if (own != unset) return own;
    if (is_port(device)) return unlimited;
    const auto any = load_limit(row(scope, any_device), resource);
    return any != unset ? any : unlimited;
}

Policy PolicySegment::decompile() const {
    Policy policy;
    policy.mode = mode();
    policy.on_unavailable = on_unavailable();
    policy.deny_errno = deny_errno();
    policy.clamp_device_attr = clamp_device_attr();
    policy.log_level = log_level();
    policy.log_target = log_target();
    policy.log_file = log_file();
    policy.process = decompile_rows(image().process);
    policy.tenant = decompile_rows(image().tenant);
    decompile_sidecar(image().sidecar, policy);
    return policy;
}

}  // namespace rdmaquota
