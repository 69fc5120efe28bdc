// What a change of limits needs beside the change: taking it back, and what the policy file says since.
#include <algorithm>

#include "policy/fixed_text.hpp"
#include "shm/policy/limits_image.hpp"
#include "shm/policy/limits_writer.hpp"

namespace rdmaquota {

LimitsWriter::Cell LimitsWriter::cell(Scope scope, std::string_view device, Resource resource) const {
    Cell cell{scope, std::string(device), resource};
    const auto* row = limits_.row(scope, device);
    if (row == nullptr) return cell;
    cell.soft = load(row->soft[index(resource)]);
    const auto& from = limits_.origins_of(*row).of[index(resource)];
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
    limits_.for_each_row(Scope::process, [&](const std::string& device, const LimitsRow&, const OriginRow& origins) {
        for (const auto& resource : limit_table) {
            auto& from = const_cast<Origin&>(origins.of[index(resource.id)]);
            const auto* by_file = everyone.origin(Scope::process, device, resource.id);
            if (own_of(from) == 0) store(from.file, by_file == nullptr ? rdmaquota::unset : load(by_file->file));
        }
    });
}

Result<void> LimitsWriter::drop(std::span<const std::string> devices) {
    auto image = LimitsImage::copy(limits_.header(), limits_.rows(), limits_.origins(), limits_.row_count());
    if (!image.drop(devices)) return {};
    return replace_with(image);
}

std::size_t count_changed(const std::vector<LimitsWriter::Held>& held) noexcept {
    return static_cast<std::size_t>(std::count_if(held.begin(), held.end(), [](const auto& limit) { return !limit.is_share(); }));
}

std::vector<LimitsWriter::Held> held_limits(const LimitsSegment& limits) {
    std::vector<LimitsWriter::Held> held;
    for (const auto scope : {Scope::process, Scope::tenant})
        limits.for_each_row(scope, [&](const std::string& device, const LimitsRow& found, const OriginRow& origins) {
            for (const auto& row : limit_table) {
                const auto reason = load_reason(&found, row.id);
                if (reason == Reason::configured) continue;
                const auto& from = origins.of[index(row.id)];
                held.push_back({scope, device, row.id, reason, limits.limit(scope, device, row.id),
                                limits.configured(scope, device, row.id), std::string(fixed_text(from.why)), load(from.since_s)});
            }
        });
    return held;
}

bool is_configured(const LimitsSegment& limits, Scope scope, std::string_view device) {
    const auto* row = limits.row(scope, device);
    if (row == nullptr) return false;
    return std::any_of(limit_table.begin(), limit_table.end(), [&](const auto& resource) {
        const auto& from = limits.origins_of(*row).of[index(resource.id)];
        const auto reason = load_reason(row, resource.id);
        return load(from.configured) != unset || load(from.file) != unset || load(from.guarantee) != unset ||
               load(from.guarantee_file) != unset || load(from.soft_file) != unset ||
               load(row->soft[index(resource.id)]) != unset ||
               (reason != Reason::configured && reason != Reason::grant && reason != Reason::cluster);
    });
}

namespace {

// `own`: the bits of a limit of each process that is the tenant's own.
LimitsByScope limits_by(const LimitsSegment& limits, std::uint64_t Origin::*which, std::uint32_t own) {
    LimitsByScope all;
    for (const auto scope : {Scope::process, Scope::tenant})
        limits.for_each_row(scope, [&](const std::string& device, const LimitsRow&, const OriginRow& origins) {
            auto& row = row_for(all[index(scope)], device);
            for (std::size_t r = 0; r < limit_count; ++r)
                if ((own_of(origins.of[r]) & own) != 0 || scope == Scope::tenant) row[r] = load(origins.of[r].*which);
        });
    return all;
}

}  // namespace

LimitsByScope configured_limits(const LimitsSegment& limits) { return limits_by(limits, &Origin::configured, ~0U); }
LimitsByScope limits_in_file(const LimitsSegment& limits) { return limits_by(limits, &Origin::file, own_in_file); }

bool has_own_limits(const LimitsSegment& limits) noexcept {
    bool any = false;
    for (const auto scope : {Scope::process, Scope::tenant})
        limits.for_each_row(scope, [&](const std::string&, const LimitsRow&, const OriginRow& origins) {
            for (std::size_t r = 0; r < limit_count; ++r)
                for (const auto part : {LimitPart::limit, LimitPart::guarantee, LimitPart::soft})
                    any |= (own_of(origins.of[r], part) & own_alone) != 0;
        });
    return any;
}

}  // namespace rdmaquota
