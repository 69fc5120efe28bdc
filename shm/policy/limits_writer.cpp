#include "shm/policy/limits_writer.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fmt/core.h>

#include "policy/fixed_text.hpp"
#include "policy/printable.hpp"
#include "policy/write_all.hpp"
#include "shm/atomic.hpp"
#include "shm/layout_version.hpp"
#include "shm/policy/limits_image.hpp"
#include "shm/same_file.hpp"

namespace rdmaquota {
namespace {

// A file has this second name while it is replaced.
std::string old_path(const std::string& path) { return path + ".old"; }

Result<void> write_file(const std::string& path, const LimitsImage& image) {
    const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    const auto bytes = image.bytes();
    bool written = fd >= 0 && fchmod(fd, 0644) == 0;
    written = written && write_all(fd, bytes);
    const int error = errno;
    if (fd >= 0) close(fd);
    if (!written) return Error{fmt::format("cannot write {}: {}", path, std::strerror(error))};
    return {};
}

// Marks the file that was replaced last as superseded, if the process that replaced it was killed before it did.
void complete_replacement(const std::string& path) {
    const auto old = old_path(path);
    if (access(old.c_str(), F_OK) != 0) return;
    if (!same_file(old, path)) mark_superseded(old);
    unlink(old.c_str());
}

Result<void> replace(const std::string& path, const LimitsImage& image) {
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

Result<void> keep_granted(const LimitsSegment& before, LimitsImage& image) {
    for (const auto& device : before.devices(Scope::tenant))
        for (const auto& row : limit_table)
            if (const auto amount = before.granted(device, row.id); amount != unset)
                if (auto kept = image.grant(device, row.id, amount); !kept) return kept;
    return {};
}

Result<void> check_device(std::string_view name) {
    if (valid_device(name)) return {};
    return Error{fmt::format("'{}' is no device name: write a name such as mlx5_0, a port such as mlx5_0/1, \"*\" or total",
                             printable(name))};
}

void write_why(Origin& origin, std::string_view why) noexcept {
    std::fill(std::begin(origin.why), std::end(origin.why), '\0');
    why.substr(0, sizeof origin.why - 1).copy(origin.why, sizeof origin.why - 1);
}

}  // namespace

Result<LimitsWriter> LimitsWriter::open(const std::string& path, std::chrono::milliseconds patience) {
    auto lock = PolicyLock::take(path, patience);
    if (!lock) {
        const auto usable = LimitsSegment::open(path);  // where there is no file, say how to get one
        return Error{usable ? lock.error() : usable.error()};
    }
    complete_replacement(path);
    auto limits = LimitsSegment::open(path, LimitsSegment::Parts::all, true);
    if (!limits) return Error{limits.error()};
    return LimitsWriter(std::move(*lock), path, std::move(*limits));
}

Result<void> LimitsWriter::publish(const std::string& path, const TenantLimits& limits) {
    return publish(path, limits, nullptr);
}

Result<void> LimitsWriter::publish_instance(const std::string& path, const TenantLimits& limits, const LimitsSegment& of_template) {
    return publish(path, limits, &of_template);
}

Result<void> LimitsWriter::publish(const std::string& path, const TenantLimits& limits, const LimitsSegment* of_template) {
    const auto lock = PolicyLock::take(path);
    if (!lock) return Error{lock.error()};
    const auto before = LimitsSegment::open(path, LimitsSegment::Parts::all);
    auto image = LimitsImage::compile(limits);
    if (!image) return Error{image.error()};
    if (of_template != nullptr) image->take_rows(of_template->header(), of_template->rows(), of_template->origins());
    else if (before) image->keep_capacities(*before);
    if (!before)
        if (auto granted = image->grant(limits.first_grants); !granted) return granted;
    if (before) {
        if (auto kept = image->keep_ceilings(*before); !kept) return kept;
        if (auto kept = keep_granted(*before, *image); !kept) return kept;
    }
    return replace(path, *image);
}

Origin& LimitsWriter::origin(std::size_t row, Resource resource) noexcept {
    return const_cast<Origin&>(limits_.origins()[row].of[index(resource)]);
}

void LimitsWriter::changed() noexcept { add(const_cast<std::uint64_t&>(limits_.header().generation), 1); }

// One file for all of them.
Result<void> LimitsWriter::add_rows(Scope scope, std::span<const std::string_view> devices) {
    if (limits_.devices(scope).size() + devices.size() > most_limit_rows)
        return Error{fmt::format("no room for limits of another device: tenant {} has limits for {} already",
                                 limits_.tenant(), limits_.devices(scope).size())};
    auto image = LimitsImage::copy(limits_.header(), limits_.rows(), limits_.origins(), limits_.row_count());
    for (const auto device : devices) image.add_row(scope, device);
    return replace_with(image);
}

Result<void> LimitsWriter::replace_with(const LimitsImage& image) {
    if (auto replaced = replace(path_, image); !replaced) return replaced;
    auto fresh = LimitsSegment::open(path_, LimitsSegment::Parts::all, true);
    if (!fresh) return Error{fresh.error()};
    limits_ = std::move(*fresh);
    return {};
}

Result<void> LimitsWriter::add_missing_rows(std::span<const Grant> grants) {
    std::vector<std::string_view> missing;
    for (const auto& grant : grants) {
        if (!missing.empty() && missing.back() == grant.device) continue;
        if (auto valid = check_device(grant.device); !valid) return valid;
        if (limits_.row(Scope::tenant, grant.device) == nullptr && std::find(missing.begin(), missing.end(), grant.device) == missing.end())
            missing.push_back(grant.device);
    }
    if (missing.empty()) return {};
    return add_rows(Scope::tenant, missing);
}

// The number of the device's row, which is made when there is none.
Result<std::size_t> LimitsWriter::row_to_write(Scope scope, std::string_view device) {
    if (auto valid = check_device(device); !valid) return Error{valid.error()};
    if (limits_.row(scope, device) == nullptr)
        if (auto added = add_rows(scope, {&device, 1}); !added) return Error{added.error()};
    return static_cast<std::size_t>(limits_.row(scope, device) - limits_.rows());
}

// Lowers what is held, before `limit` is configured in a row: in this row, and where the row "*" stands for others, in
// theirs. What was meant to be above stays.
void LimitsWriter::lower_held(std::size_t row, Resource resource, std::uint64_t limit) noexcept {
    const auto scope = static_cast<Scope>(rows()[row].scope);
    const bool any = device_of(rows()[row]) == any_device;
    for (std::size_t i = 0; i < limits_.row_count(); ++i) {
        auto& held = rows()[i];
        const auto device = device_of(held);
        const bool alone = stands_alone(device);  // "*" does not stand for it
        const bool stands_for = any && !alone && load(origin(i, resource).configured) == rdmaquota::unset;
        const auto reason = load_reason(&held, resource);
        if (held.scope != rows()[row].scope || reason == Reason::configured || (i != row && !stands_for)) continue;
        auto now = limits_.amount(limit, device, resource);
        if (limit == rdmaquota::unset) now = any || alone ? unlimited : limits_.configured(scope, any_device, resource);
        auto& effective = held.effective[index(resource)];
        const auto before = limits_.configured(scope, device, resource);
        if (load(effective) <= before) store(effective, std::min(load(effective), now));
    }
}

// A limit that a reason holds stays, but is never above what is configured now, unless it was meant to be above.
void LimitsWriter::configure(std::size_t row, Resource resource, std::uint64_t limit) noexcept {
    lower_held(row, resource, limit);
    store(origin(row, resource).configured, limit);
    settle_row(row, resource);
    if (device_of(rows()[row]) == any_device) settle_below(row, resource);
}

// Makes effective what is configured and granted; what a reason holds stays, never above what is granted.
void LimitsWriter::settle_row(std::size_t row, Resource resource) noexcept {
    auto& of = rows()[row];
    auto& effective = of.effective[index(resource)];
    const auto granted = load(origin(row, resource).granted);
    const auto ceiling = ceiling_of(row, resource);
    const auto reason = load_reason(&of, resource);
    if (reason == Reason::rule) {
        for (const auto most : {granted, ceiling})
            if (most < load(effective) && most != rdmaquota::unset) store(effective, most);
        return;
    }
    const auto configured = limits_.configured(static_cast<Scope>(of.scope), device_of(of), resource);
    const auto settled = settle(load(origin(row, resource).configured), configured, granted, ceiling);
    store(of.reason[index(resource)], static_cast<std::uint8_t>(settled.reason));
    store(effective, settled.effective);
}

std::uint64_t LimitsWriter::ceiling_of(std::size_t row, Resource resource) const noexcept {
    const auto& of = limits_.rows()[row];
    const bool is_total = of.scope == static_cast<std::uint32_t>(Scope::tenant) && device_of(of) == total_device;
    return is_total && !is_rate(resource) ? limits_.ceiling(resource) : rdmaquota::unset;
}

Result<void> LimitsWriter::put_ceiling(Resource resource, std::uint64_t amount) {
    const auto total = row_to_write(Scope::tenant, total_device);
    if (!total) return Error{total.error()};
    const auto row = row_to_write(ceiling_scope, total_device);
    if (!row) return Error{row.error()};
    if (limits_.ceiling(resource) == amount) return {};
    store(rows()[*row].effective[index(resource)], amount);
    const auto of_tenant = static_cast<std::size_t>(limits_.row(Scope::tenant, total_device) - limits_.rows());
    store(origin(of_tenant, resource).since_s, static_cast<std::uint64_t>(std::time(nullptr)));
    settle_row(of_tenant, resource);
    if (load_reason(&rows()[of_tenant], resource) == Reason::cluster) write_why(origin(of_tenant, resource), "what this node may use of the cluster's");
    changed();
    return {};
}

// The rows with a share for which the row "*" says what is configured.
void LimitsWriter::settle_below(std::size_t row, Resource resource) noexcept {
    for (std::size_t i = 0; i < limits_.row_count(); ++i)
        if (i != row && rows()[i].scope == rows()[row].scope &&
            load(origin(i, resource).granted) != rdmaquota::unset)
            settle_row(i, resource);
}

void LimitsWriter::store_part(LimitPart part, std::size_t row, Resource resource, std::uint64_t amount) noexcept {
    if (part == LimitPart::soft) store(rows()[row].soft[index(resource)], amount);
    else store(origin(row, resource).guarantee, amount);
}

// Notes whose a cell is from now on, when `whose` is set or unset. False: it stays as it is.
bool LimitsWriter::change_own(std::size_t row, Resource resource, LimitPart part, Whose whose, bool set) noexcept {
    auto& from = origin(row, resource);
    const auto own = own_of(from, part);
    if (whose == Whose::everyone) return own == 0;
    const bool of_tenant = whose == Whose::tenant;
    const bool stays = !of_tenant && (own & own_alone) != 0;
    if (set && stays) return false;
    if (set) set_own(from, part, own | (of_tenant ? own_by_set : own_by_template));
    else set_own(from, part, own & ~(of_tenant ? own_by_set | own_by_template : own_by_template));
    return !stays;
}

Result<void> LimitsWriter::set_part(LimitPart which, std::string_view device, std::span<const Setting> settings, Whose whose) {
    const auto row = row_to_write(Scope::tenant, device);
    if (!row) return Error{row.error()};
    for (const auto& [resource, amount] : settings)
        if (change_own(*row, resource, which, whose, true)) store_part(which, *row, resource, amount);
    changed();
    return {};
}

Result<void> LimitsWriter::unset_part(LimitPart which, std::string_view device, std::span<const Resource> resources, Whose whose) {
    if (auto valid = check_device(device); !valid) return valid;
    const auto* found = limits_.row(Scope::tenant, device);
    if (found == nullptr) return {};
    const auto row = static_cast<std::size_t>(found - limits_.rows());
    for (const auto resource : resources) {
        if (!change_own(row, resource, which, whose, false)) continue;
        const auto& from = origin(row, resource);
        store_part(which, row, resource, load(which == LimitPart::soft ? from.soft_file : from.guarantee_file));
    }
    changed();
    return {};
}

Result<void> LimitsWriter::grant(std::span<const Grant> grants, std::string_view why) {
    if (auto added = add_missing_rows(grants); !added) return added;
    std::size_t row = 0;
    std::string_view in_row;
    for (const auto& [device, resource, amount] : grants) {
        if (in_row != device) row = static_cast<std::size_t>(limits_.row(Scope::tenant, device) - limits_.rows());
        in_row = device;
        auto& from = origin(row, resource);
        store(from.granted, amount);
        const auto before = load_reason(&rows()[row], resource);
        settle_row(row, resource);
        const bool begins = before != Reason::grant && load_reason(&rows()[row], resource) == Reason::grant;
        if (begins) store(from.since_s, static_cast<std::uint64_t>(std::time(nullptr)));
        if (begins || before == Reason::grant) write_why(from, why);
    }
    if (!grants.empty()) changed();
    return {};
}

void LimitsWriter::bind(std::span<const BoundDevice> bound) noexcept {
    bool any = false;
    for (std::uint32_t i = 0; i < limits_.row_count(); ++i) any |= bind_row(rows()[i], bound);
    if (any) changed();
}

Result<void> LimitsWriter::set_capacity(std::string_view device, const LimitRow& capacity) {
    const auto row = row_to_write(capacity_scope, device);
    if (!row) return Error{row.error()};
    for (const auto& resource : limit_table) {
        const auto r = index(resource.id);
        if (load_limit(&rows()[*row], resource.id) == capacity[r]) continue;
        store(rows()[*row].effective[r], capacity[r]);
        store(origin(*row, resource.id).configured, capacity[r]);
        for (std::size_t i = 0; i < limits_.row_count(); ++i)
            if (rows()[i].scope < scope_count) settle_row(i, resource.id);
    }
    changed();
    return {};
}

Result<void> LimitsWriter::earmark(std::span<const Grant> amounts) {
    if (auto added = add_missing_rows(amounts); !added) return added;
    for (const auto& [device, resource, amount] : amounts) {
        const auto row = static_cast<std::size_t>(limits_.row(Scope::tenant, device) - limits_.rows());
        store(origin(row, resource).earmarked, static_cast<float>(amount));
    }
    if (!amounts.empty()) changed();
    return {};
}

Result<void> LimitsWriter::set(Scope scope, std::string_view device, std::span<const Setting> settings, Whose whose) {
    const auto row = row_to_write(scope, device);
    if (!row) return Error{row.error()};
    for (const auto& [resource, limit] : settings)
        if (change_own(*row, resource, LimitPart::limit, whose, true)) configure(*row, resource, limit);
    changed();
    return {};
}

Result<void> LimitsWriter::set(Scope scope, std::string_view device, Resource resource, std::uint64_t limit) {
    const Setting setting{resource, limit};
    return set(scope, device, std::span(&setting, 1));
}

Result<void> LimitsWriter::unset(Scope scope, std::string_view device, std::span<const Resource> resources,
                                 Whose whose) {
    if (auto valid = check_device(device); !valid) return valid;
    const auto* found = limits_.row(scope, device);
    if (found == nullptr) return {};
    const auto row = static_cast<std::size_t>(found - limits_.rows());
    for (const auto resource : resources)
        if (change_own(row, resource, LimitPart::limit, whose, false)) configure(row, resource, load(origin(row, resource).file));
    changed();
    return {};
}

Result<void> LimitsWriter::hold(Scope scope, std::string_view device, Resource resource, std::uint64_t limit,
                                Reason reason, std::string_view why) {
    const auto row = row_to_write(scope, device);
    if (!row) return Error{row.error()};
    auto& from = origin(*row, resource);
    write_why(from, why);
    for (const auto most : {load(from.granted), ceiling_of(*row, resource)})
        if (most != rdmaquota::unset) limit = std::min(limit, most);
    store(from.since_s, static_cast<std::uint64_t>(std::time(nullptr)));
    store(rows()[*row].reason[index(resource)], static_cast<std::uint8_t>(reason));
    store(rows()[*row].effective[index(resource)], limit);
    changed();
    return {};
}

void LimitsWriter::release(Scope scope, std::string_view device, Resource resource) noexcept {
    const auto* found = limits_.row(scope, device);
    if (found == nullptr || load_reason(found, resource) == Reason::configured) return;
    const auto row = static_cast<std::size_t>(found - limits_.rows());
    store(rows()[row].reason[index(resource)], static_cast<std::uint8_t>(Reason::configured));
    settle_row(row, resource);
    changed();
}

}  // namespace rdmaquota
