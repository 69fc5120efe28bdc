#include "tools/common/upgrade/old_policy.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shm/atomic.hpp"
#include "tools/common/upgrade/old_ledger.hpp"

namespace rdmaquota::upgrade {
namespace {

std::string_view device_of(const OldRow& row) noexcept { return {row.device, strnlen(row.device, sizeof row.device)}; }

template <class Image>
auto& rows_of(Image& image, Scope scope) noexcept {
    return scope == Scope::process ? image.process : image.tenant;
}

const OldRow* row_of(const OldPolicyImage& image, Scope scope, std::string_view device) noexcept {
    for (const auto& row : rows_of(image, scope)) {
        if (device_of(row).empty()) return nullptr;
        if (device_of(row) == device) return &row;
    }
    return nullptr;
}

std::uint64_t cell(const OldRow* row, Resource resource) noexcept {
    return row ? load(row->limits[index(resource)]) : unset;
}

// A file of another layout is not the old policy. Only root writes either.
OpenFile open_policy(const std::string& path, int flags) {
    OpenFile file(::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    struct stat status {};
    OldPolicyImage image;
    const bool is_old = file && fstat(file.fd(), &status) == 0 && S_ISREG(status.st_mode) &&
                        status.st_size == static_cast<off_t>(sizeof image) &&
                        pread(file.fd(), &image, sizeof image, 0) == static_cast<ssize_t>(sizeof image) &&
                        image.magic == old_policy_magic && image.layout_version == old_policy_layout;
    return is_old ? std::move(file) : OpenFile();
}

Mapping map(const OpenFile& file) noexcept {
    return file ? Mapping::map(file.fd(), sizeof(OldPolicyImage), true, Mapping::AfterLoss::as_mapped) : Mapping();
}

void supersede_image(OldPolicyImage& image) noexcept {
    store(image.superseded, 1U);
    store(image.generation, old_lost_generation);
}

// An old `reload` that was killed left a second name of the policy that it replaced, whose programs do not know yet.
void complete_replacement(const std::string& path) {
    const auto old = path + ".old";
    const auto replaced = map(open_policy(old, O_RDWR));
    if (replaced && !replaced.is_of(path.c_str())) supersede_image(*static_cast<OldPolicyImage*>(replaced.address()));
    unlink(old.c_str());
}

}  // namespace

std::optional<OldPolicyImage> read_old_policy(const std::string& directory) {
    const auto file = open_policy(old_policy_path(directory), O_RDONLY);
    OldPolicyImage image;
    if (!file || pread(file.fd(), &image, sizeof image, 0) != static_cast<ssize_t>(sizeof image)) return std::nullopt;
    return image;
}

// As the old provider has it: the device's own row takes precedence over "*", which includes neither ports nor sums.
std::uint64_t old_limit(const OldPolicyImage& image, Scope scope, std::string_view device, Resource resource) noexcept {
    auto limit = cell(row_of(image, scope, device), resource);
    if (limit == unset && !is_port(device) && device != total_device)
        limit = cell(row_of(image, scope, any_device), resource);
    return limit == unset ? unlimited : limit;
}

Mode old_mode(const OldPolicyImage& image) noexcept {
    const auto mode = load(image.mode);
    return mode <= static_cast<std::uint32_t>(Mode::off) ? static_cast<Mode>(mode) : Mode::enforce;
}

Result<std::optional<OldPolicy>> OldPolicy::open(const std::string& directory) {
    const auto path = old_policy_path(directory);
    if (!open_policy(path, O_RDONLY)) return std::optional<OldPolicy>();
    auto lock = PolicyLock::take(path);
    if (!lock) return Error{lock.error()};
    complete_replacement(path);
    const auto file = open_policy(path, O_RDWR);
    if (!file) return Error{fmt::format("cannot change {}: {}", path, std::strerror(errno))};
    auto mapping = map(file);
    if (!mapping) return Error{fmt::format("cannot map {}: {}", path, std::strerror(errno))};
    return std::optional(OldPolicy(std::move(*lock), std::move(mapping)));
}

std::vector<std::string> old_devices(const OldPolicyImage& image) {
    std::vector<std::string> names;
    for (const auto& row : image.tenant) {
        if (device_of(row).empty()) break;
        names.emplace_back(device_of(row));
    }
    return names;
}

// The first byte of a new row's name makes it visible, so it comes last.
bool OldPolicy::set(std::string_view device, Resource resource, std::uint64_t limit) noexcept {
    for (auto& row : writable().tenant) {
        const bool fresh = device_of(row).empty();
        if (!fresh && device_of(row) != device) continue;
        if (fresh) std::fill(std::begin(row.limits), std::end(row.limits), unset);
        store(row.limits[index(resource)], limit);
        if (!fresh) return true;
        std::fill(std::begin(row.device) + 1, std::end(row.device), '\0');
        device.substr(1, sizeof row.device - 2).copy(row.device + 1, sizeof row.device - 2);
        store(row.device[0], device.front());
        return true;
    }
    return false;
}

void OldPolicy::set_mode(Mode mode) noexcept { store(writable().mode, static_cast<std::uint32_t>(mode)); }

void OldPolicy::publish_changes() noexcept {
    add(writable().generation, 1);
    std::atomic_thread_fence(std::memory_order_seq_cst);  // before the gates are read, which is by system calls
}

void OldPolicy::supersede() noexcept { supersede_image(writable()); }

}  // namespace rdmaquota::upgrade
