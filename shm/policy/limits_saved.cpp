// What a change of limits needs beside the change: taking it back, and what the policy file says since.
#include <algorithm>

#include "shm/policy/limits_image.hpp"
#include "shm/policy/limits_writer.hpp"

namespace rdmaquota {

LimitsWriter::Cell LimitsWriter::cell(Scope scope, std::string_view device, Resource resource) const {
    Cell cell{scope, std::string(device), resource};
    const auto* row = limits_.row(scope, device);
    if (row == nullptr) return cell;
    cell.soft = load(row->soft[index(resource)]);
    const auto& from = *limits_.origin(scope, device, resource);
    cell.configured = load(from.configured);
    cell.file = load(from.file);
    cell.own = load(from.own);
    cell.guarantee = load(from.guarantee);
    cell.guarantee_file = load(from.guarantee_file);
    cell.soft_file = load(from.soft_file);
    return cell;
}

void LimitsWriter::restore(const Cell& cell) noexcept {
    const auto* found = limits_.row(cell.scope, cell.device);
    if (found == nullptr) return;
    const auto row = static_cast<std::size_t>(found - limits_.rows());
    auto& from = origin(row, cell.resource);
    store(from.file, cell.file);
    store(from.own, cell.own);
    store(from.guarantee_file, cell.guarantee_file);
    store(from.soft_file, cell.soft_file);
    store_part(LimitPart::guarantee, row, cell.resource, cell.guarantee);
    store_part(LimitPart::soft, row, cell.resource, cell.soft);
    configure(row, cell.resource, cell.configured);
    changed();
}

Result<void> LimitsWriter::rebase(Scope scope, std::string_view device, LimitPart part, const Rebased& cell,
                                  Whose whose) {
    if (limits_.row(scope, device) == nullptr && cell.in_file == rdmaquota::unset) return {};
    const auto row = row_to_write(scope, device);
    if (!row) return Error{row.error()};
    auto& from = origin(*row, cell.resource);
    const auto own = own_of(from, part);
    if (whose == Whose::everyone && (own & (own_in_file | own_in_override)) != 0) return {};
    if (whose == Whose::its_template && (own & own_in_override) != 0) return {};
    if (part == LimitPart::guarantee) store(from.guarantee_file, cell.in_file);
    if (part == LimitPart::soft) store(from.soft_file, cell.in_file);
    if (part == LimitPart::limit) store(from.file, cell.in_file);
    if (whose == Whose::everyone) return {};
    const auto kept = whose == Whose::its_template ? own & own_by_set : 0U;
    set_own(from, part, cell.own | kept);
    return {};
}

void LimitsWriter::rebase_everyone(const LimitsSegment& everyone) noexcept {
    for (const auto& device : limits_.devices(Scope::process))
        for (const auto& resource : resource_table) {
            auto& from = const_cast<Origin&>(*limits_.origin(Scope::process, device, resource.id));
            const auto* by_file = everyone.origin(Scope::process, device, resource.id);
            if (own_of(from) == 0) store(from.file, by_file == nullptr ? rdmaquota::unset : load(by_file->file));
        }
}

Result<void> LimitsWriter::drop(std::span<const std::string> devices) {
    auto image = LimitsImage::copy(limits_.header(), limits_.rows(), limits_.origins(), limits_.row_count());
    if (!image.drop(devices)) return {};
    return replace_with(image);
}

bool is_configured(const LimitsSegment& limits, Scope scope, std::string_view device) {
    const auto* row = limits.row(scope, device);
    if (row == nullptr) return false;
    return std::any_of(resource_table.begin(), resource_table.end(), [&](const auto& resource) {
        const auto& from = *limits.origin(scope, device, resource.id);
        const auto reason = load_reason(row, resource.id);
        return load(from.configured) != unset || load(from.file) != unset || load(from.guarantee) != unset ||
               load(from.guarantee_file) != unset || load(from.soft_file) != unset ||
               load(row->soft[index(resource.id)]) != unset ||
               (reason != Reason::configured && reason != Reason::grant);
    });
}

namespace {

// `own`: the bits of a limit of each process that is the tenant's own.
LimitsByScope limits_by(const LimitsSegment& limits, std::uint64_t Origin::*which, std::uint32_t own) {
    LimitsByScope all;
    for (const auto scope : {Scope::process, Scope::tenant})
        for (const auto& device : limits.devices(scope)) {
            auto& row = row_for(all[index(scope)], device);
            for (const auto& resource : resource_table)
                if (const auto& from = *limits.origin(scope, device, resource.id);
                    (own_of(from) & own) != 0 || scope == Scope::tenant)
                    row[index(resource.id)] = load(from.*which);
        }
    return all;
}

}  // namespace

LimitsByScope configured_limits(const LimitsSegment& limits) { return limits_by(limits, &Origin::configured, ~0U); }
LimitsByScope limits_in_file(const LimitsSegment& limits) { return limits_by(limits, &Origin::file, own_in_file); }

bool has_own_limits(const LimitsSegment& limits) noexcept {
    for (const auto scope : {Scope::process, Scope::tenant})
        for (const auto& device : limits.devices(scope))
            for (const auto& resource : resource_table)
                for (const auto part : {LimitPart::limit, LimitPart::guarantee, LimitPart::soft})
                    if ((own_of(*limits.origin(scope, device, resource.id), part) & own_alone) != 0) return true;
    return false;
}

}  // namespace rdmaquota
