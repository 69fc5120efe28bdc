#include "shm/policy/policy_writer.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "shm/atomic.hpp"

namespace rdmaquota {
namespace {

// A clear bit means that an administrator set the limit. Bit 0 stays set: `unset` has it clear.
static_assert(resource_count <= note_slot && (unset | 1) == UINT64_MAX);
std::uint64_t note_bit(Resource resource) noexcept { return std::uint64_t{2} << index(resource); }

Error bad_device(std::string_view name) {
    return {fmt::format("'{}' is no device name: write a name such as mlx5_0, a port such as mlx5_0/1, \"*\" or total",
                        printable(name))};
}

void fill_row(PolicyRow& row, const LimitRow& limits) {
    std::fill(std::begin(row.limits), std::end(row.limits), unset);
    std::copy(limits.begin(), limits.end(), std::begin(row.limits));
}

Result<void> fill_rows(PolicyRow (&rows)[policy_rows], const ScopeLimits& scope) {
    if (scope.size() > policy_rows)
        return Error{
            fmt::format("too many devices in one scope of the policy: {} of at most {}", scope.size(), policy_rows)};
    for (std::size_t i = 0; i < scope.size(); ++i) {
        if (!valid_device(scope[i].device)) return bad_device(scope[i].device);
        fill_row(rows[i], scope[i].limits);
        std::copy(scope[i].device.begin(), scope[i].device.end(), rows[i].device);
    }
    return {};
}

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
    if (auto filled = fill_rows(image.tenant, policy.tenant); !filled) return filled;
    return compile_sidecar(policy, image.sidecar);
}

Result<void> write_file(const std::string& path, const PolicyImage& image) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    bool written = fd >= 0 && fchmod(fd, 0644) == 0;
    written = written && write(fd, &image, sizeof image) == static_cast<ssize_t>(sizeof image);
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!written) return Error{fmt::format("cannot write {}: {}", path, std::strerror(error))};
    return {};
}

bool same_file(const std::string& a, const std::string& b) noexcept {
    struct stat first {
    }, second{};
    return stat(a.c_str(), &first) == 0 && stat(b.c_str(), &second) == 0 && first.st_dev == second.st_dev &&
           first.st_ino == second.st_ino;
}

// A policy has this second name while it is replaced.
std::string old_path(const std::string& path) { return path + ".old"; }

// The row of `device`, or the first unused one, or nullptr when there is neither.
PolicyRow* row_to_write(PolicyRow (&rows)[policy_rows], std::string_view device) noexcept {
    for (auto& row : rows)
        if (device_of(row).empty() || device_of(row) == device) return &row;
    return nullptr;
}

// The first byte makes the row visible to readers, so it comes last.
void publish_name(PolicyRow& row, std::string_view device) noexcept {
    std::fill(std::begin(row.device) + 1, std::end(row.device), '\0');
    std::copy(device.begin() + 1, device.end(), row.device + 1);
    std::atomic_ref<char>(row.device[0]).store(device.front());
}

}  // namespace

Result<PolicyWriter> PolicyWriter::open(const std::string& path, std::chrono::milliseconds patience) {
    auto lock = PolicyLock::take(path, patience);
    if (!lock) {
        const auto usable = PolicySegment::open(path);  // where there is no policy, say how to get one
        return Error{usable ? lock.error() : usable.error()};
    }
    complete_replacement(path);
    auto policy = PolicySegment::open(path, true);
    if (!policy) return Error{policy.error()};
    return PolicyWriter(std::move(*lock), std::move(*policy));
}

Result<void> PolicyWriter::set(Scope scope, std::string_view device, std::span<const Setting> settings) {
    if (!valid_device(device)) return bad_device(device);
    auto* row = row_to_write(rows_of(image(), scope), device);
    if (!row)
        return Error{
            fmt::format("no room for limits of another device: all {} rows of the policy are taken", policy_rows)};
    const bool fresh = device_of(*row).empty();
    if (fresh) fill_row(*row, unset_row());
    for (const auto& [resource, limit] : settings) store(row->limits[index(resource)], limit);
    if (fresh) publish_name(*row, device);
    add(image().generation, 1);
    return {};
}

Result<void> PolicyWriter::set(Scope scope, std::string_view device, Resource resource, std::uint64_t limit) {
    const Setting setting{resource, limit};
    return set(scope, device, std::span(&setting, 1));
}

std::uint64_t* PolicyWriter::notes(Scope scope, std::string_view device) noexcept {
    for (auto& row : rows_of(image(), scope))
        if (device_of(row) == device) return &row.limits[note_slot];
    return nullptr;
}

void PolicyWriter::note_set(Scope scope, std::string_view device, Resource resource) noexcept {
    if (auto* word = notes(scope, device)) std::atomic_ref(*word).fetch_and(~note_bit(resource));
}

bool PolicyWriter::take_note(Scope scope, std::string_view device, Resource resource) noexcept {
    const auto bit = note_bit(resource);
    auto* word = notes(scope, device);
    return word != nullptr && (std::atomic_ref(*word).fetch_or(bit) & bit) == 0;
}

Result<void> PolicyWriter::publish(const std::string& path, const Policy& policy) {
    const auto lock = PolicyLock::take(path);
    if (!lock) return Error{lock.error()};
    return publish(*lock, path, policy);
}

Result<void> PolicyWriter::publish(const PolicyLock&, const std::string& path, const Policy& policy) {
    PolicyImage image{};
    if (auto compiled = compile(policy, image); !compiled) return compiled;
    complete_replacement(path);
    const auto temporary = path + ".tmp";
    if (auto written = write_file(temporary, image); !written) return written;
    const bool kept = link(path.c_str(), old_path(path).c_str()) == 0 || errno == ENOENT;
    if (!kept || std::rename(temporary.c_str(), path.c_str()) != 0) {
        const int error = errno;
        unlink(temporary.c_str());
        unlink(old_path(path).c_str());
        return Error{fmt::format("cannot replace {}: {}", path, std::strerror(error))};
    }
    complete_replacement(path);
    return {};
}

void PolicyWriter::complete_replacement(const std::string& path) {
    const auto old = old_path(path);
    if (access(old.c_str(), F_OK) != 0) return;
    if (!same_file(old, path))
        if (auto replaced = PolicySegment::open(old, true)) {
            auto& image = *static_cast<PolicyImage*>(replaced->mapping_.address());
            store(image.superseded, 1U);
            store(image.generation, PolicySegment::lost_generation);
        }
    unlink(old.c_str());
}

}  // namespace rdmaquota
