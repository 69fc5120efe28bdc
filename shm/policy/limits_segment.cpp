#include "shm/policy/limits_segment.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/fixed_text.hpp"
#include "policy/node_memory.hpp"
#include "shm/layout_version.hpp"

namespace rdmaquota {
namespace {

Error no_limits(const std::string& path, const std::string& why) {
    return {fmt::format("cannot use the limits {}: {}; run 'rdmaquota reload' as root to write them", path, why)};
}

Result<void> check(const std::string& path, int fd, LimitsHeader& header) {
    struct stat status {};
    if (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode)) return no_limits(path, "it is no file");
    if (pread(fd, &header, sizeof header, 0) != static_cast<ssize_t>(sizeof header) || header.magic != limits_magic)
        return no_limits(path, "it is no file of limits");
    if (header.layout_version != layout_version)
        return no_limits(path, fmt::format("its layout version is {}, this rdmaquota needs {}", header.layout_version,
                                           layout_version));
    const auto wanted = limits_bytes(header.row_count, LimitsSegment::Parts::all);
    if (header.row_count > (scope_count + 2) * most_limit_rows || static_cast<std::size_t>(status.st_size) != wanted)
        return no_limits(path, fmt::format("it has {} bytes instead of {}", status.st_size, wanted));
    return {};
}

std::uint64_t or_unlimited(std::uint64_t limit) noexcept { return limit == unset ? unlimited : limit; }

std::uint64_t earmarked_in(const Origin& origin) noexcept {
    const auto amount = load(origin.earmarked);
    return amount >= 1 && amount < static_cast<float>(max_amount) ? static_cast<std::uint64_t>(amount) : 0;
}

}  // namespace

std::string_view device_of(const LimitsRow& row) noexcept {
    return fixed_text(row.device);
}

std::uint64_t load_limit(const LimitsRow* row, Resource resource) noexcept {
    return row ? std::atomic_ref<std::uint64_t>(const_cast<LimitsRow*>(row)->effective[index(resource)])
                     .load(std::memory_order_relaxed)
               : unset;
}

Reason load_reason(const LimitsRow* row, Resource resource) noexcept {
    if (!row) return Reason::configured;
    const auto reason = load(row->reason[index(resource)]);
    return reason < static_cast<std::uint8_t>(Reason::other) ? static_cast<Reason>(reason) : Reason::other;
}

Result<LimitsSegment> LimitsSegment::open(const std::string& path, Parts parts, bool writable) {
    const int fd = ::open(path.c_str(), (writable ? O_RDWR : O_RDONLY) | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return no_limits(path, std::strerror(errno));
    LimitsHeader header;
    auto checked = check(path, fd, header);
    Mapping mapping;
    if (checked)
        mapping = Mapping::map(fd, limits_bytes(header.row_count, parts), writable, Mapping::AfterLoss::as_mapped);
    const int error = errno;
    close(fd);
    if (!checked) return Error{checked.error()};
    if (!mapping) return no_limits(path, std::strerror(error));
    LimitsSegment segment(std::move(mapping), parts == Parts::all);
    segment.row_count_ = header.row_count;
    if (auto* copy = static_cast<LimitsHeader*>(segment.mapping_.shown_after_loss())) copy->generation = lost_generation;
    return segment;
}

Unavailable LimitsSegment::on_unavailable() const noexcept {
    return load(header().on_unavailable) == static_cast<std::uint32_t>(Unavailable::deny) ? Unavailable::deny
                                                                                          : Unavailable::allow;
}

int LimitsSegment::deny_errno() const noexcept {
    const auto number = static_cast<int>(load(header().deny_errno));
    return number == EAGAIN || number == ENOMEM ? number : EDQUOT;
}

bool LimitsSegment::clamp_device_attr() const noexcept { return load(header().clamp_device_attr) != 0; }

LogLevel LimitsSegment::log_level() const noexcept {
    return static_cast<LogLevel>(std::min(load(header().log_level), static_cast<std::uint32_t>(LogLevel::debug)));
}

LogTarget LimitsSegment::log_target() const noexcept {
    return static_cast<LogTarget>(std::min(load(header().log_target), static_cast<std::uint32_t>(LogTarget::file)));
}

std::string LimitsSegment::log_file() const { return std::string(fixed_text(header().log_file)); }

std::string LimitsSegment::tenant() const { return std::string(fixed_text(header().tenant)); }

namespace {

// Whether a row of this name holds for the device; see second_of_name.
bool names(std::string_view row, std::string_view device) noexcept {
    const auto at = device.find(second_of_name);
    if (row == device || at == device.npos) return row == device;
    const auto port = device.substr(std::min(device.find('/', at), device.size()));
    return row.size() == at + port.size() && row.starts_with(device.substr(0, at)) && row.ends_with(port);
}

bool selects(const LimitsRow& row, const DeviceKey& device) noexcept {
    const auto bound = load(row.uverbs_plus_1);
    if (bound == 0) return false;
    if (device.uverbs != no_uverbs) return bound == device.uverbs + 1 && port_part(device_of(row)) == port_part(device.name);
    DeviceText name;
    look(name, row.bound_name);
    return names(fixed_text(name.text), device.name);
}

}  // namespace

std::string present_name_of(const LimitsRow& row) {
    if (load(row.uverbs_plus_1) == 0) return std::string(device_of(row));
    DeviceText name;
    look(name, row.bound_name);
    return std::string(fixed_text(name.text));
}

const LimitsRow* find_row(const LimitsRow* rows, std::size_t count, Scope scope, DeviceKey device) noexcept {
    const auto* end = rows + count;
    const auto find = [&](auto fits) {
        const auto* found = std::find_if(rows, end, [&](const LimitsRow& row) { return row.scope == static_cast<std::uint32_t>(scope) && fits(row); });
        return found == end ? nullptr : found;
    };
    const auto* exact = find([&](const LimitsRow& row) { return names(device_of(row), device.name); });
    return exact != nullptr ? exact : find([&](const LimitsRow& row) { return selects(row, device); });
}

std::uint64_t find_capacity(const LimitsRow* rows, std::size_t count, DeviceKey device, Resource resource) noexcept {
    if (resource == Resource::mr_bytes) return node_memory();
    const auto name = without_port(device.name);
    const auto known = load_limit(find_row(rows, count, capacity_scope, name.substr(0, name.find(second_of_name))), resource);
    return known == unset ? 0 : known;
}

std::vector<std::string> LimitsSegment::devices(Scope scope) const {
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < row_count_; ++i)
        if (rows()[i].scope == static_cast<std::uint32_t>(scope)) names.push_back(present_name_of(rows()[i]));
    return names;
}

std::set<std::string> LimitsSegment::selectors() const {
    std::set<std::string> selectors;
    for (std::uint32_t i = 0; i < row_count_; ++i)
        if (is_selector(device_of(rows()[i]))) selectors.emplace(device_of(rows()[i]));
    return selectors;
}

std::uint64_t LimitsSegment::load_limit_of(const LimitsRow* row, Resource resource) noexcept { return load_limit(row, resource); }

std::uint64_t LimitsSegment::limit(Scope scope, DeviceKey device, Resource resource) const noexcept {
    const auto own = load_limit(row(scope, device), resource);
    if (own != unset) return amount(own, device, resource);
    if (stands_alone(device.name)) return unlimited;
    const auto any = load_limit(row(scope, any_device), resource);
    return any != unset ? amount(any, device, resource) : unlimited;
}

std::uint64_t LimitsSegment::as_written(LimitPart part, Scope scope, DeviceKey device, Resource resource) const noexcept {
    const auto word = [&](const LimitsRow* found) {
        if (found == nullptr) return unset;
        if (part == LimitPart::soft) return load(found->soft[index(resource)]);
        const auto& from = origins()[found - rows()].of[index(resource)];
        return part == LimitPart::guarantee ? load(from.guarantee) : load(from.configured);
    };
    if (part != LimitPart::soft && !all_) return unset;
    const auto own = word(row(scope, device));
    return own != unset || stands_alone(device.name) ? own : word(row(scope, any_device));
}

bool LimitsSegment::has_percentages() const noexcept {
    for (std::size_t i = 0; i < row_count_; ++i)
        for (std::size_t r = 0; rows()[i].scope < scope_count && r < limit_count; ++r) {
            const auto& from = origins()[i].of[r];
            for (const auto word : {load(from.configured), load(from.guarantee), load(rows()[i].soft[r])})
                if (is_percentage(word)) return true;
        }
    return false;
}

Reason LimitsSegment::reason(Scope scope, DeviceKey device, Resource resource) const noexcept {
    const auto* own = row(scope, device);
    if (stands_alone(device.name) || load_limit(own, resource) != unset)
        return load_reason(own, resource);
    return load_reason(row(scope, any_device), resource);
}

const OriginRow* LimitsSegment::origins() const noexcept {
    return reinterpret_cast<const OriginRow*>(rows() + row_count_);
}

const Origin* LimitsSegment::origin(Scope scope, DeviceKey device, Resource resource) const noexcept {
    const auto* found = all_ ? row(scope, device) : nullptr;
    return found ? &origins()[found - rows()].of[index(resource)] : nullptr;
}

// An unknown part of a device is not reserved.
std::uint64_t LimitsSegment::guarantee(DeviceKey device, Resource resource) const noexcept {
    return known_guarantee(as_written(LimitPart::guarantee, Scope::tenant, device, resource), device, resource);
}

std::uint64_t LimitsSegment::known_guarantee(std::uint64_t written, DeviceKey device, Resource resource) const noexcept {
    const auto reserved = amount(written, device, resource);
    return written == unset || reserved == unlimited ? 0 : reserved;
}

std::uint64_t LimitsSegment::earmarked(DeviceKey device, Resource resource) const noexcept {
    const auto* own = origin(Scope::tenant, device, resource);
    return own == nullptr ? 0 : earmarked_in(*own);
}

std::uint64_t LimitsSegment::granted(DeviceKey device, Resource resource) const noexcept {
    const auto* own = origin(Scope::tenant, device, resource);
    return own == nullptr ? unset : load(own->granted);
}

std::array<LimitsSegment::ShareFigures, limit_count> LimitsSegment::share_figures(
    DeviceKey device) const noexcept {
    const bool alone = stands_alone(device.name);  // "*" does not stand for it
    const auto* own = all_ ? row(Scope::tenant, device) : nullptr;
    const auto* any = all_ && !alone ? row(Scope::tenant, any_device) : nullptr;
    const auto value = [&](const LimitsRow* of, std::size_t r, auto Origin::*which) {
        return of == nullptr ? unset : load(origins()[of - rows()].of[r].*which);
    };
    const auto either = [&](std::size_t r, auto Origin::*which) {
        const auto amount = value(own, r, which);
        return amount != unset ? amount : value(any, r, which);
    };
    std::array<ShareFigures, limit_count> all{};
    for (const auto& resource : limit_table) {
        const auto r = index(resource.id);
        const auto limit = either(r, &Origin::configured), guarantee = either(r, &Origin::guarantee);
        all[r] = {limit == unset ? unlimited : amount(limit, device, resource.id), known_guarantee(guarantee, device, resource.id),
                  value(own, r, &Origin::granted), own == nullptr ? 0 : earmarked_in(origins()[own - rows()].of[r])};
        const auto* holds = alone || load_limit(own, resource.id) != unset ? own : any;
        if (load_reason(holds, resource.id) == Reason::rule)
            all[r].limit = std::min(all[r].limit, amount(load_limit(holds, resource.id), device, resource.id));
        // The cluster is the parent of all nodes: what is below this tenant shares this node's part.
        if (device.name == total_device) all[r].limit = std::min(all[r].limit, or_unlimited(ceiling(resource.id)));
    }
    return all;
}

std::uint64_t LimitsSegment::soft(DeviceKey device, Resource resource) const noexcept {
    const auto written = device.name == total_device && !is_rate(resource) ? unset : as_written(LimitPart::soft, Scope::tenant, device, resource);
    return written == unset ? unlimited : amount(written, device, resource);
}

std::uint32_t LimitsSegment::grant_wait_ms() const noexcept {
    const auto plus_1 = load(header().grant_wait_plus_1);
    return plus_1 == 0 ? default_grant_wait_ms : std::min(plus_1 - 1, most_grant_wait_ms);
}

std::uint64_t LimitsSegment::configured(Scope scope, DeviceKey device, Resource resource) const noexcept {
    const auto written = as_written(LimitPart::limit, scope, device, resource);
    return written == unset ? unlimited : amount(written, device, resource);
}

}  // namespace rdmaquota
