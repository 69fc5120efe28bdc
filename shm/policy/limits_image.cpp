#include "shm/policy/limits_image.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "shm/atomic.hpp"
#include "shm/layout_version.hpp"

namespace rdmaquota {
namespace {

std::uint64_t new_id() {
    timespec now{};
    clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(now.tv_nsec);
}

Result<void> fill_header(const TenantLimits& limits, LimitsHeader& header) {
    if (limits.log_file.size() >= sizeof header.log_file)
        return Error{fmt::format("the log file's name is longer than {} bytes", sizeof header.log_file - 1)};
    if (limits.tenant.size() >= sizeof header.tenant)
        return Error{fmt::format("the tenant's name is longer than {} bytes", sizeof header.tenant - 1)};
    header.magic = limits_magic;
    header.layout_version = layout_version;
    header.generation = 1;
    header.id = new_id();
    header.mode = static_cast<std::uint32_t>(limits.mode);
    header.on_unavailable = static_cast<std::uint32_t>(limits.on_unavailable);
    header.deny_errno = static_cast<std::uint32_t>(limits.deny_errno ? limits.deny_errno : EDQUOT);
    header.log_level = static_cast<std::uint32_t>(limits.log_level);
    header.log_target = static_cast<std::uint32_t>(limits.log_target);
    header.clamp_device_attr = limits.clamp_device_attr ? 1 : 0;
    header.weight = limits.weight;
    header.grace_s = limits.grace_s;
    header.max_delay_ms = limits.max_delay_ms;
    header.hides_devices = limits.hides_devices ? 1 : 0;
    header.grant_wait_plus_1 = limits.grant_wait_ms + 1;
    limits.tenant.copy(header.tenant, sizeof header.tenant - 1);
    limits.log_file.copy(header.log_file, sizeof header.log_file - 1);
    return {};
}

template <class T>
std::string_view bytes_of(const T& data, std::size_t count) {
    return {reinterpret_cast<const char*>(&data), count * sizeof(T)};
}

}  // namespace

bool bind_row(LimitsRow& row, std::span<const BoundDevice> bound) noexcept {
    const auto selected = std::find_if(bound.begin(), bound.end(), [&](const BoundDevice& one) { return one.selector == device_of(row); });
    const bool none = selected == bound.end();
    const auto uverbs_plus_1 = none ? 0 : selected->uverbs + 1;
    DeviceText name{}, before;
    if (!none) selected->name.copy(name.text, sizeof name.text - 1);
    look(before, row.bound_name);
    if (load(row.uverbs_plus_1) == uverbs_plus_1 && std::memcmp(&before, &name, sizeof name) == 0) return false;
    show(row.bound_name, name);
    store(row.uverbs_plus_1, uverbs_plus_1);
    return true;
}

void LimitsImage::add_row(Scope scope, std::string_view device) {
    auto& row = rows_.emplace_back();
    row = {};
    device.copy(row.device, sizeof row.device - 1);
    row.scope = static_cast<std::uint32_t>(scope);
    std::fill(std::begin(row.effective), std::end(row.effective), unset);
    std::fill(std::begin(row.soft), std::end(row.soft), unset);
    auto& origins = origins_.emplace_back();
    origins = {};
    for (auto& origin : origins.of) origin.configured = origin.file = unset;
    header_.row_count = static_cast<std::uint32_t>(rows_.size());
}

void LimitsImage::fill_last(const LimitRow* own, const LimitRow* for_everyone) {
    for (std::size_t r = 0; r < limit_count; ++r) {
        const bool is_own = own && (*own)[r] != unset;
        const auto limit = is_own ? (*own)[r] : for_everyone ? (*for_everyone)[r] : unset;
        auto& origin = origins_.back().of[r];
        origin.own = is_own ? own_in_file : 0;
        rows_.back().effective[r] = origin.configured = origin.file = limit;
    }
}

Result<void> LimitsImage::add_scope(Scope scope, const ScopeLimits& own, const ScopeLimits& for_everyone) {
    std::vector<std::string> devices;
    for (const auto* list : {&own, &for_everyone})
        for (const auto& entry : *list)
            if (std::find(devices.begin(), devices.end(), entry.device) == devices.end()) devices.push_back(entry.device);
    if (devices.size() > most_limit_rows)
        return Error{fmt::format("too many devices in one scope of tenant {}: {} of at most {}", header_.tenant,
                                 devices.size(), most_limit_rows)};
    for (const auto& device : devices) {
        if (!valid_device(device)) return Error{fmt::format("'{}' is no device name", printable(device))};
        add_row(scope, device);
        fill_last(find_row(own, device), find_row(for_everyone, device));
    }
    return {};
}

Result<LimitsImage> LimitsImage::compile(const TenantLimits& limits) {
    LimitsImage image;
    if (auto filled = fill_header(limits, image.header_); !filled) return Error{filled.error()};
    if (auto added = image.add_scope(Scope::process, limits.limits[index(Scope::process)], limits.for_everyone); !added)
        return Error{added.error()};
    if (auto added = image.add_scope(Scope::tenant, limits.limits[index(Scope::tenant)], {}); !added)
        return Error{added.error()};
    for (const auto* parts : {&limits.guarantees, &limits.softs})
        for (const auto& row : *parts)
            if (auto there = image.row_to_write(Scope::tenant, row.device); !there) return Error{there.error()};
    image.bind(limits.bound);
    image.fill_parts(limits);
    if (limits.is_override) image.mark_override(limits);
    if (auto begun = image.begin_ceilings(limits.cluster); !begun) return Error{begun.error()};
    return image;
}

void LimitsImage::bind(std::span<const BoundDevice> bound) {
    for (auto& row : rows_) bind_row(row, bound);
}

void LimitsImage::fill_parts(const TenantLimits& limits) {
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        if (rows_[i].scope != static_cast<std::uint32_t>(Scope::tenant)) continue;
        const auto* guarantees = find_row(limits.guarantees, device_of(rows_[i]));
        const auto* softs = find_row(limits.softs, device_of(rows_[i]));
        for (std::size_t r = 0; r < limit_count; ++r) {
            auto& origin = origins_[i].of[r];
            if (guarantees != nullptr)
                for (auto* guarantee : {&origin.guarantee, &origin.guarantee_file}) store(*guarantee, (*guarantees)[r]);
            if (softs == nullptr) continue;
            rows_[i].soft[r] = (*softs)[r];
            store(origin.soft_file, (*softs)[r]);
        }
    }
}

void LimitsImage::mark_override(const TenantLimits& limits) {
    const auto mark = [](const LimitRow* own, OriginRow& origins, LimitPart part) {
        for (std::size_t r = 0; own != nullptr && r < limit_count; ++r)
            if ((*own)[r] != unset) origins.of[r].own |= own_in_override << own_shift(part);
    };
    for (std::size_t i = 0; i < rows_.size(); ++i) {
        const auto device = device_of(rows_[i]);
        mark(find_row(limits.own_limits[rows_[i].scope], device), origins_[i], LimitPart::limit);
        if (rows_[i].scope != static_cast<std::uint32_t>(Scope::tenant)) continue;
        mark(find_row(limits.guarantees, device), origins_[i], LimitPart::guarantee);
        mark(find_row(limits.own_softs, device), origins_[i], LimitPart::soft);
    }
}

void LimitsImage::take_rows(const LimitsHeader& header, const LimitsRow* rows, const OriginRow* origins) {
    rows_.assign(rows, rows + header.row_count);
    origins_.assign(origins, origins + header.row_count);
    header_.row_count = header.row_count;
    for (std::size_t i = 0; i < rows_.size(); ++i)
        for (std::size_t r = 0; r < limit_count; ++r) {
            auto& origin = origins_[i].of[r];
            std::uint32_t own = 0;
            for (const auto part : {LimitPart::limit, LimitPart::guarantee, LimitPart::soft}) {
                const auto bits = own_of(origin, part);
                own |= ((bits & own_in_file) | (bits & own_by_set ? own_by_template : 0U)) << own_shift(part);
            }
            origin.own = own;
            origin.since_s = 0;
            origin.earmarked = 0;
            std::fill(std::begin(origin.why), std::end(origin.why), '\0');
            store(origin.granted, unset);
            rows_[i].reason[r] = static_cast<std::uint8_t>(Reason::configured);
            rows_[i].effective[r] = origin.configured;
        }
    for (const auto& resource : resource_table)
        if (ceiling(total_device, resource.id) != unset) (void)put_ceiling(resource.id, 0);
}

LimitsImage LimitsImage::copy(const LimitsHeader& header, const LimitsRow* rows, const OriginRow* origins,
                              std::size_t count) {
    LimitsImage image;
    image.header_ = header;
    image.header_.id = new_id();
    image.header_.superseded = 0;
    image.rows_.assign(rows, rows + count);
    image.origins_.assign(origins, origins + count);
    return image;
}

std::optional<std::size_t> LimitsImage::find(Scope scope, std::string_view device) const {
    const auto* row = find_row(rows_.data(), rows_.size(), scope, device);
    if (row == nullptr) return std::nullopt;
    return static_cast<std::size_t>(row - rows_.data());
}

std::uint64_t LimitsImage::configured(Scope scope, std::string_view device, Resource resource) const {
    const bool under_any = !stands_alone(device);
    for (const auto name : {device, any_device}) {
        const auto row = name == device || under_any ? find(scope, name) : std::nullopt;
        if (row && origins_[*row].of[index(resource)].configured != unset)
            return amount(origins_[*row].of[index(resource)].configured, device, resource);
    }
    return unlimited;
}

std::uint64_t LimitsImage::amount(std::uint64_t limit, std::string_view device, Resource resource) const {
    return is_percentage(limit) ? amount_of(limit, find_capacity(rows_.data(), rows_.size(), device, resource)) : limit;
}

void LimitsImage::keep_capacities(const LimitsSegment& before) {
    for (const auto& device : before.devices(capacity_scope)) {
        add_row(capacity_scope, device);
        for (const auto& resource : limit_table)
            rows_.back().effective[index(resource.id)] = origins_.back().of[index(resource.id)].configured =
                load_limit(before.row(capacity_scope, device), resource.id);
    }
}

Settled settle(std::uint64_t own, std::uint64_t configured, std::uint64_t granted, std::uint64_t ceiling) noexcept {
    if (ceiling != unset && ceiling < configured && (granted == unset || ceiling <= granted)) return {ceiling, Reason::cluster};
    if (granted == unset) return {own, Reason::configured};
    return granted < configured ? Settled{granted, Reason::grant} : Settled{configured, Reason::configured};
}

std::uint64_t LimitsImage::ceiling(std::string_view device, Resource resource) const {
    const auto row = device == total_device ? find(ceiling_scope, total_device) : std::nullopt;
    return row ? rows_[*row].effective[index(resource)] : unset;
}

Result<void> LimitsImage::put_ceiling(Resource resource, std::uint64_t amount) {
    const auto row = row_to_write(ceiling_scope, total_device), total = row_to_write(Scope::tenant, total_device);
    if (!row) return Error{row.error()};
    if (!total) return Error{total.error()};
    const auto r = index(resource);
    rows_[*row].effective[r] = amount;
    const auto& origin = origins_[*total].of[r];
    const auto settled = settle(origin.configured, configured(Scope::tenant, total_device, resource), load(origin.granted), amount);
    rows_[*total].effective[r] = settled.effective;
    rows_[*total].reason[r] = static_cast<std::uint8_t>(settled.reason);
    return {};
}

Result<void> LimitsImage::keep_ceilings(const LimitsSegment& before) {
    for (const auto& resource : resource_table)
        if (const auto amount = before.ceiling(resource.id); amount != unset)
            if (auto put = put_ceiling(resource.id, amount); !put) return put;
    return {};
}

Result<void> LimitsImage::begin_ceilings(std::span<const Resource> resources) {
    for (const auto resource : resources) {
        if (auto put = put_ceiling(resource, 0); !put) return put;
        origins_[*find(ceiling_scope, total_device)].of[index(resource)].configured = 0;
    }
    return {};
}

// The number of the device's row, which is made when there is none.
Result<std::size_t> LimitsImage::row_to_write(Scope scope, std::string_view device) {
    if (const auto row = find(scope, device)) return *row;
    const auto in_scope = std::count_if(rows_.begin(), rows_.end(), [&](const LimitsRow& other) {
        return other.scope == static_cast<std::uint32_t>(scope);
    });
    if (in_scope == static_cast<std::ptrdiff_t>(most_limit_rows))
        return Error{fmt::format("no room for limits of {}: tenant {} has limits for {} devices already",
                                 printable(device), header_.tenant, most_limit_rows)};
    add_row(scope, device);
    return rows_.size() - 1;
}

Result<void> LimitsImage::grant(std::string_view device, Resource resource, std::uint64_t amount) {
    const auto row = row_to_write(Scope::tenant, device);
    if (!row) return Error{row.error()};
    auto& origin = origins_[*row].of[index(resource)];
    const auto settled = settle(origin.configured, configured(Scope::tenant, device, resource), amount, ceiling(device, resource));
    store(origin.granted, amount);
    origin.since_s = static_cast<std::uint64_t>(std::time(nullptr));
    rows_[*row].effective[index(resource)] = settled.effective;
    rows_[*row].reason[index(resource)] = static_cast<std::uint8_t>(settled.reason);
    return {};
}

Result<void> LimitsImage::grant(const ScopeLimits& amounts) {
    for (const auto& [device, row] : amounts)
        for (const auto& resource : limit_table)
            if (row[index(resource.id)] != unset)
                if (auto granted = grant(device, resource.id, row[index(resource.id)]); !granted) return granted;
    return {};
}

bool LimitsImage::drop(std::span<const std::string> devices) {
    const auto before = rows_.size();
    for (std::size_t i = rows_.size(); i-- > 0;) {
        if (std::find(devices.begin(), devices.end(), device_of(rows_[i])) == devices.end()) continue;
        rows_.erase(rows_.begin() + static_cast<std::ptrdiff_t>(i));
        origins_.erase(origins_.begin() + static_cast<std::ptrdiff_t>(i));
    }
    header_.row_count = static_cast<std::uint32_t>(rows_.size());
    return rows_.size() != before;
}

std::string LimitsImage::bytes() const {
    std::string all(bytes_of(header_, 1));
    if (rows_.empty()) return all;
    return all.append(bytes_of(rows_.front(), rows_.size())).append(bytes_of(origins_.front(), origins_.size()));
}

void mark_superseded(const std::string& path) noexcept {
    const int fd = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0) return;
    struct stat status {};
    void* memory = MAP_FAILED;
    if (fstat(fd, &status) == 0 && status.st_size >= static_cast<off_t>(sizeof(LimitsHeader)))
        memory = mmap(nullptr, sizeof(LimitsHeader), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (memory == MAP_FAILED) return;
    auto& header = *static_cast<LimitsHeader*>(memory);
    if (header.magic == limits_magic) {
        store(header.superseded, 1U);
        store(header.generation, LimitsSegment::lost_generation);
    }
    munmap(memory, sizeof(LimitsHeader));
}

}  // namespace rdmaquota
