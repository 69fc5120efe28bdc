#include "tools/common/limits/policy_change.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "shm/paths.hpp"
#include "shm/policy/node_policy.hpp"
#include "tools/common/limits/named_devices.hpp"
#include "tools/common/limits/policy_change_checks.hpp"

namespace rdmaquota {
namespace {

Result<LimitsWriter> open_for_change(const std::string& here) {
    const auto path = limits_path(here);
    if (::access(path.c_str(), W_OK) != 0 && errno != ENOENT)
        return Error{fmt::format("cannot change the limits in {}: {}{}", path, std::strerror(errno),
                                 ::geteuid() == 0 ? "" : "; run as root")};
    return LimitsWriter::open(path);
}

std::uint64_t value_of(const LimitsSegment& limits, const LimitKey& key, LimitPart part) {
    const auto written = limits.as_written(part, key.scope, key.device, key.resource);
    return written != unset ? written : part == LimitPart::guarantee ? 0 : unlimited;
}

void fill_after(std::vector<LimitDone>& done, const LimitsSegment& limits) {
    for (auto& [key, before, after, in_force, reason, part] : done) {
        after = value_of(limits, key, part);
        in_force = limits.amount(after, key.device, key.resource);
        if (part != LimitPart::limit) continue;
        in_force = limits.limit(key.scope, key.device, key.resource);
        reason = limits.reason(key.scope, key.device, key.resource);
    }
}

const ScopeLimits& scope_of(const TenantPolicy& tenant, const LimitKey& key, LimitPart part) {
    if (part == LimitPart::soft) return tenant.softs;
    return part == LimitPart::guarantee ? tenant.guarantees : tenant.limits[index(key.scope)];
}

// An override's own table, without the cells that it inherits from its template.
const ScopeLimits& own_scope_of(const TenantPolicy& tenant, const LimitKey& key, LimitPart part) {
    if (part == LimitPart::soft) return tenant.own_softs;
    return part == LimitPart::guarantee ? tenant.guarantees : tenant.own_limits[index(key.scope)];
}

// What the policy file says of a tenant's limit: its own table, that of its template, then [process].
LimitsWriter::Rebased in_file(const Policy& policy, const LimitKey& key, LimitPart part) {
    const auto cell = [&](const ScopeLimits& rows) {
        const auto* row = find_row(rows, key.device);
        return row == nullptr ? unset : (*row)[index(key.resource)];
    };
    const auto in_tables = [&](std::uint64_t value, std::uint32_t own = own_in_file) {
        return LimitsWriter::Rebased{key.resource, value, value == unset ? 0U : own};
    };
    if (key.tenant == node_tenant) return in_tables(cell(policy.node));
    if (key.tenant.empty()) return in_tables(cell(policy.process));
    const auto* own = policy.find(key.tenant);
    const bool is_override = own != nullptr && own->is_override;
    const auto& own_rows = own == nullptr ? ScopeLimits() : is_override ? own_scope_of(*own, key, part) : scope_of(*own, key, part);
    const auto* from = template_with(policy, key.tenant);
    if (const auto value = cell(own_rows); value != unset)
        return in_tables(value, from != nullptr ? own_in_file | own_in_override : own_in_file);
    if (from != nullptr)
        if (const auto value = cell(scope_of(*from, key, part)); value != unset) return in_tables(value);
    const bool from_process = part == LimitPart::limit && key.scope == Scope::process;
    return {key.resource, from_process ? cell(policy.process) : unset, 0};
}

}  // namespace

Result<PolicyChange> PolicyChange::begin(const std::string& directory, Kind kind, std::vector<LimitChange> changes,
                                         std::chrono::milliseconds patience) {
    PolicyChange change(directory, kind, std::move(changes));
    if (auto possible = check_part(directory, change.key(), change.part()); !possible) return Error{possible.error()};
    if (auto locked = change.lock(patience); !locked) return Error{locked.error()};
    if (auto resolved = change.resolve(); !resolved) return Error{resolved.error()};
    if (auto checked = change.check(); !checked) return Error{checked.error()};
    return change;
}

// No tenant is made meanwhile with the limits from before. A user who may not lock may not change either, and opening the limits
// says so.
Result<void> PolicyChange::lock(std::chrono::milliseconds patience) {
    if (is_own_directory(directory_) || ::access(directory_.c_str(), W_OK) != 0) return {};
    auto taken = PolicyLock::take(node_policy_path(directory_), patience);
    if (!taken) return Error{taken.error()};
    lock_.emplace(std::move(*taken));
    return {};
}

// In a directory that is one tenant's own there are no others.
bool PolicyChange::is_for_everyone() const {
    return key().tenant.empty() && key().scope == Scope::process && !is_own_directory(directory_);
}

Result<void> PolicyChange::resolve() {
    auto named = find_tenant(directory_, key().tenant);
    if (!named) return Error{named.error()};
    places_.push_back(*named);
    if (is_for_everyone()) places_.push_back({std::string(everyone_key), here_path(directory_, everyone_key)});
    for (auto& place : tenant_places(directory_)) {
        if (place.key == named->key || place.key == node_tenant) continue;
        const bool of_template = is_instance_of(place.key, named->key);
        if (of_template) note_exempt(place);
        if (is_for_everyone() || of_template) places_.push_back(std::move(place));
    }
    return {};
}

void PolicyChange::note_exempt(const TenantPlace& place) {
    const auto limits = LimitsSegment::open(limits_path(place.here), LimitsSegment::Parts::all);
    if (!limits) return;
    for (const auto& change : changes_)
        if (const auto* from = limits->origin(key().scope, key().device, change.key.resource);
            from != nullptr && (own_of(*from, part()) & own_alone) != 0)
            return exempt_.push_back(limits->tenant());
}

Result<void> PolicyChange::check() const {
    const auto writer = open_for_change(places_.front().here);
    if (!writer) return Error{writer.error()};
    if (const auto device = check_named_device(directory_, kind_, changes_, writer->limits()); !device) return device;
    if (kind_ == Kind::set)
        for (const auto& change : changes_)
            if (const auto fits = check_amount(change, writer->limits()); !fits) return fits;
    return {};
}

// What people and the file call the tenant: "user/alice", whose key is "user/#1000".
Result<std::string> PolicyChange::name_in_file() const {
    const auto& place = places_.front();
    if (is_own_directory(directory_) || place.key == node_tenant || is_for_everyone()) return key().tenant;
    const auto running = NodePolicy::read(node_policy_path(directory_));
    const auto policy = running ? running->decompile() : Policy();
    if (const auto* tenant = policy.find(place.key); tenant != nullptr && tenant->transient)
        return Error{fmt::format("tenant '{}' is in no policy file, since 'tenant add' has made it; leave --persist out",
                                 printable(place.key))};
    const auto limits = LimitsSegment::open(limits_path(place.here));
    return limits ? limits->tenant() : place.key;
}

Result<void> PolicyChange::prepare_file(const std::string& file) {
    auto locked = PolicyLock::take(linked_file(file), patience_for_file);
    if (!locked) return Error{locked.error()};
    file_lock_.emplace(std::move(*locked));
    const auto name = name_in_file();
    if (!name) return Error{name.error()};
    auto changes = changes_;
    for (auto& change : changes) change.key.tenant = *name;
    auto edit = PolicyEdit::prepare(file, changes);
    if (!edit) return Error{edit.error()};
    for (const auto& change : changes) rebased_.push_back(in_file(edit->policy(), change.key, change.part));
    edit_.emplace(std::move(*edit));
    return {};
}

Result<std::vector<LimitDone>> PolicyChange::commit() {
    std::vector<LimitDone> done;
    for (const auto& place : places_)
        if (auto applied = apply_at(place, done); !applied) return take_back(applied.error());
    if (edit_)
        if (auto placed = edit_->put_in_place(); !placed) return take_back(placed.error());
    undo_.clear();
    if (kind_ == Kind::unset)
        if (auto dropped = drop_unnamed_devices(directory_); !dropped) return Error{dropped.error()};
    const auto limits = LimitsSegment::open(limits_path(places_.front().here), LimitsSegment::Parts::all);
    if (!limits) return Error{limits.error()};
    fill_after(done, *limits);
    return done;
}

Result<void> PolicyChange::apply_at(const TenantPlace& place, std::vector<LimitDone>& done) {
    auto writer = open_for_change(place.here);
    if (!writer) return Error{writer.error()};
    Undo undo{place.here, {}};
    for (const auto& change : changes_) undo.cells.push_back(writer->cell(key().scope, key().device, change.key.resource));
    if (done.empty())
        for (const auto& change : changes_)
            done.push_back({change.key, value_of(writer->limits(), change.key, part()), 0, 0, {}, part()});
    undo_.push_back(std::move(undo));
    // Tenants that are made later have these limits.
    using Whose = LimitsWriter::Whose;
    if (is_for_everyone()) return apply(*writer, place.key == everyone_key ? Whose::tenant : Whose::everyone);
    return apply(*writer, &place == &places_.front() ? Whose::tenant : Whose::its_template);
}

Result<void> PolicyChange::apply(LimitsWriter& writer, LimitsWriter::Whose whose) const {
    const auto& [tenant, scope, device, ignored] = key();
    std::vector<Setting> settings;
    std::vector<Resource> resources;
    for (const auto& change : changes_) {
        settings.push_back({change.key.resource, change.limit});
        resources.push_back(change.key.resource);
    }
    if (kind_ == Kind::unset) {
        if (auto rebased = rebase(writer, whose); !rebased) return rebased;
        if (part() != LimitPart::limit) return writer.unset_part(part(), device, resources, whose);
        return writer.unset(scope, device, resources, whose);
    }
    const auto set = part() != LimitPart::limit ? writer.set_part(part(), device, settings, whose)
                                                : writer.set(scope, device, settings, whose);
    return set ? rebase(writer, whose) : set;
}

Result<void> PolicyChange::rebase(LimitsWriter& writer, LimitsWriter::Whose whose) const {
    for (const auto& cell : rebased_)
        if (auto done = writer.rebase(key().scope, key().device, part(), cell, whose); !done) return done;
    return {};
}

Error PolicyChange::take_back(const std::string& why) {
    std::string left;
    for (const auto& [here, cells] : undo_) {
        auto writer = open_for_change(here);
        if (!writer) left = writer.error();
        for (const auto& cell : cells)
            if (writer) writer->restore(cell);
    }
    undo_.clear();
    return {left.empty() ? why : fmt::format("{}; and what was changed before could not be taken back: {}", why, left)};
}

void read_again(const std::string& directory, std::vector<LimitDone>& done) {
    const auto place = find_tenant(directory, done.front().key.tenant);
    const auto limits = LimitsSegment::open(limits_path(place ? place->here : directory), LimitsSegment::Parts::all);
    if (limits) fill_after(done, *limits);
}

namespace {

Result<std::vector<LimitDone>> change(const std::string& directory, PolicyChange::Kind kind,
                                      std::vector<LimitChange> changes) {
    auto change = PolicyChange::begin(directory, kind, std::move(changes));
    if (!change) return Error{change.error()};
    return change->commit();
}

}  // namespace

Result<std::vector<LimitDone>> set_limits(const std::string& directory, const std::vector<LimitChange>& changes) {
    return change(directory, PolicyChange::Kind::set, changes);
}

Result<std::vector<LimitDone>> unset_limits(const std::string& directory, const std::vector<LimitKey>& keys,
                                            LimitPart part) {
    std::vector<LimitChange> changes;
    for (const auto& key : keys) changes.push_back({key, unset, part});
    return change(directory, PolicyChange::Kind::unset, std::move(changes));
}

}  // namespace rdmaquota
