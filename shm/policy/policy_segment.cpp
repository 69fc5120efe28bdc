#include "shm/policy/policy_segment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "shm/atomic.hpp"

namespace rdmaquota {
namespace {

using Rows = PolicyRow[policy_rows];

Error no_policy(const std::string& path, const std::string& why) {
    return {fmt::format("cannot use the policy {}: {}; run 'rdmaquota reload' as root to write it", path, why)};
}

template <class Image>
auto& rows_of(Image& image, Scope scope) noexcept {
    return scope == Scope::process ? image.process : image.tenant;
}

std::string_view name_of(const PolicyRow& row) noexcept { return {row.device, strnlen(row.device, sizeof row.device)}; }

Error bad_device(std::string_view name) {
    return {fmt::format("'{}' is no device name: write a name such as mlx5_0, a port such as mlx5_0/1, \"*\" or total",
                        printable(name))};
}

void fill_row(PolicyRow& row, const LimitRow& limits) {
    std::fill(std::begin(row.limits), std::end(row.limits), unset);
    std::copy(limits.begin(), limits.end(), std::begin(row.limits));
}

Result<void> fill_rows(Rows& rows, const ScopeLimits& scope) {
    if (scope.size() > policy_rows)
        return Error{fmt::format("too many devices in one scope of the policy: {} of at most {}", scope.size(),
                                 policy_rows)};
    for (std::size_t i = 0; i < scope.size(); ++i) {
        if (!valid_device(scope[i].device)) return bad_device(scope[i].device);
        fill_row(rows[i], scope[i].limits);
        std::copy(scope[i].device.begin(), scope[i].device.end(), rows[i].device);
    }
    return {};
}

// Not bit 0, which `unset` has not.
static_assert(resource_count <= note_slot && (unset | 1) == UINT64_MAX);
std::uint64_t note_bit(Resource resource) noexcept { return std::uint64_t{2} << index(resource); }

std::uint64_t new_id() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

Result<void> compile(const Policy& policy, PolicyImage& image) {
    if (policy.log_file.size() >= sizeof image.log_file)
        return Error{fmt::format("the log file's name is longer than {} bytes", sizeof image.log_file - 1)};
    image.magic = policy_magic;
    image.layout_version = policy_layout_version;
    image.file_bytes = sizeof(PolicyImage);
    image.generation = 1;
    image.id = new_id();
    image.mode = static_cast<std::uint32_t>(policy.mode);
    image.on_unavailable = static_cast<std::uint32_t>(policy.on_unavailable);
    image.deny_errno = static_cast<std::uint32_t>(policy.deny_errno ? policy.deny_errno : EDQUOT);
    image.clamp_device_attr = policy.clamp_device_attr ? 1 : 0;
    image.log_level = static_cast<std::uint32_t>(policy.log_level);
    image.log_target = static_cast<std::uint32_t>(policy.log_target);
    std::copy(policy.log_file.begin(), policy.log_file.end(), image.log_file);
    if (auto filled = fill_rows(image.process, policy.process); !filled) return filled;
    return fill_rows(image.tenant, policy.tenant);
}

Result<void> write_file(const std::string& path, const PolicyImage& image) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    bool written = fd >= 0 && fchmod(fd, 0644) == 0;
    written = written && write(fd, &image, sizeof image) == static_cast<ssize_t>(sizeof image);
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!written) return Error{fmt::format("cannot write {}: {}", path, std::strerror(error))};
    return {};
}

ScopeLimits decompile_rows(const Rows& rows) {
    ScopeLimits scope;
    for (const auto& row : rows) {
        if (name_of(row).empty()) break;
        if (!valid_device(name_of(row))) continue;
        auto& limits = row_for(scope, name_of(row));
        for (std::size_t i = 0; i < resource_count; ++i) limits[i] = load(row.limits[i]);
    }
    return scope;
}

}  // namespace

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
    return segment;
}

Result<void> PolicySegment::publish(const std::string& path, const Policy& policy) {
    PolicyImage image{};
    if (auto compiled = compile(policy, image); !compiled) return compiled;
    auto previous = open(path, true);
    const auto temporary = fmt::format("{}.{}.tmp", path, getpid());
    if (auto written = write_file(temporary, image); !written) return written;
    if (std::rename(temporary.c_str(), path.c_str()) != 0) {
        const int error = errno;
        unlink(temporary.c_str());
        return Error{fmt::format("cannot write {}: {}", path, std::strerror(error))};
    }
    if (previous) store(previous->writable_image().superseded, 1U);
    return {};
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
        if (name_of(row).empty()) return nullptr;
        if (name_of(row) == device) return &row;
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

Result<void> PolicySegment::set(Scope scope, std::string_view device, Resource resource, std::uint64_t limit) {
    if (!valid_device(device)) return bad_device(device);
    for (auto& row : rows_of(writable_image(), scope)) {
        const bool fresh = name_of(row).empty();
        if (!fresh && name_of(row) != device) continue;
        if (fresh) fill_row(row, unset_row());
        store(row.limits[index(resource)], limit);
        if (fresh) {
            // The first byte makes the row visible, so it comes last.
            std::fill(std::begin(row.device) + 1, std::end(row.device), '\0');
            std::copy(device.begin() + 1, device.end(), row.device + 1);
            std::atomic_ref<char>(row.device[0]).store(device.front());
        }
        add(writable_image().generation, 1);
        return {};
    }
    return Error{fmt::format("no room for limits of another device: all {} rows of the policy are taken", policy_rows)};
}

std::uint64_t* PolicySegment::notes(Scope scope, std::string_view device) noexcept {
    const auto* found = row(scope, device);
    return found == nullptr ? nullptr : &const_cast<PolicyRow*>(found)->limits[note_slot];
}

void PolicySegment::note_set(Scope scope, std::string_view device, Resource resource) noexcept {
    if (auto* word = notes(scope, device)) std::atomic_ref(*word).fetch_and(~note_bit(resource));
}

bool PolicySegment::take_note(Scope scope, std::string_view device, Resource resource) noexcept {
    const auto bit = note_bit(resource);
    auto* word = notes(scope, device);
    return word != nullptr && (std::atomic_ref(*word).fetch_or(bit) & bit) == 0;
}

void PolicySegment::set_mode(Mode mode) noexcept { store(writable_image().mode, static_cast<std::uint32_t>(mode)); }

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
    return policy;
}

}  // namespace rdmaquota
