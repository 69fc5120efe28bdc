#include "tools/common/tenants/tenant_files.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "shm/ledger/ledger.hpp"
#include "shm/lock_file.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/limits/device_selectors.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/tenants/ledger_mount.hpp"
#include "tools/common/shares/divide.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

template <class Id>
void add(std::vector<Id>& ids, const std::optional<Id>& id) {
    if (id && std::find(ids.begin(), ids.end(), *id) == ids.end()) ids.push_back(*id);
}

bool in_policy(const Policy& policy, std::string_view key) {
    if (key == node_tenant) return !policy.node.empty();
    return policy.find(key) != nullptr || template_of(policy, key) != nullptr;
}

}  // namespace

Result<void> make_directory(const std::string& path, unsigned mode) {
    if (::mkdir(path.c_str(), mode) == 0) {
        if (::chmod(path.c_str(), mode) == 0) return {};  // whatever the umask left of it
    } else if (errno == EEXIST) {
        return {};
    }
    return Error{
        fmt::format("cannot create {}: {}{}", path, std::strerror(errno), ::geteuid() == 0 ? "" : "; run as root")};
}

// A container's cgroup says where it is charged, and lets nobody in.
bool is_matched(const TenantPolicy& tenant) {
    return std::any_of(tenant.matches.begin(), tenant.matches.end(), [](const Match& match) { return !match.bound; });
}

unsigned directory_mode_of(const TenantPolicy& tenant) {
    return !is_matched(tenant) && tenant.name != default_tenant ? 0700 : 0755;
}

LedgerAccess access_of(const TenantPolicy& tenant, const NameLookup& names) {
    // Who has a directory mounted that nobody else can enter may charge there.
    if (tenant.name == default_tenant || !is_matched(tenant)) return LedgerAccess::everyone();
    std::vector<uid_t> users;
    std::vector<gid_t> groups;
    for (const auto& match : tenant.matches) {
        if (match == Match{}) return LedgerAccess::everyone();
        if (!match.user.empty()) add(users, names.user(match.user));
        if (match.user.empty() && !match.group.empty()) add(groups, names.group(match.group));
        for (const auto& member : match.members) {
            if (member == "*") return LedgerAccess::everyone();
            if (member.starts_with('@')) add(groups, names.group(member.substr(1)));
            else add(users, names.user(member));
        }
    }
    return {.mode = 0600, .users = std::move(users), .groups = std::move(groups)};
}

Result<Policy> running_policy(const std::string& directory) {
    const auto running = NodePolicy::read(node_policy_path(directory));
    if (!running) return Error{running.error()};
    auto policy = running->decompile();
    TenantPolicy everyone, node;
    everyone.name = everyone_key;
    node.name = node_tenant;
    fill_limits(directory, everyone);
    fill_limits(directory, node);
    policy.process = everyone.limits[index(Scope::process)];
    policy.node = node.limits[index(Scope::tenant)];
    return policy;
}

namespace {

void fill_parts(const LimitsSegment& limits, TenantPolicy& tenant, bool in_file) {
    limits.for_each_row(Scope::tenant, [&](const std::string& device, const LimitsRow& row, const OriginRow& origins) {
        for (std::size_t r = 0; r < limit_count; ++r) {
            const auto& from = origins.of[r];
            const auto guarantee = load(in_file ? from.guarantee_file : from.guarantee);
            if (guarantee != unset) row_for(tenant.guarantees, device)[r] = guarantee;
            const auto soft = in_file ? load(from.soft_file) : row.soft[r];
            if (soft != unset) row_for(tenant.softs, device)[r] = soft;
        }
    });
}

}  // namespace

static void fill(const std::string& directory, TenantPolicy& tenant, bool in_file) {
    const auto limits =
        LimitsSegment::open(limits_path(here_path(directory, tenant.name)), LimitsSegment::Parts::all);
    if (!limits) return;
    tenant.limits = in_file ? limits_in_file(*limits) : configured_limits(*limits);
    fill_parts(*limits, tenant, in_file);
}

void fill_limits(const std::string& directory, TenantPolicy& tenant) { fill(directory, tenant, false); }
void fill_limits_in_file(const std::string& directory, TenantPolicy& tenant) { fill(directory, tenant, true); }

namespace {

unsigned mode_of(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_mode & 07777U : 0U;
}

Result<void> set_mode(const std::string& path, unsigned mode) {
    if (mode_of(path) == mode || ::chmod(path.c_str(), mode) == 0) return {};
    return Error{fmt::format("cannot set the permissions of {}: {}", path, std::strerror(errno))};
}

}  // namespace

Result<void> make_here(const std::string& directory, std::string_view key, unsigned mode) {
    const auto own = tenant_directory(directory, key);
    if (auto made = make_directory(tenants_directory(directory)); !made) return made;
    if (auto made = make_directory(own, mode); !made) return made;
    if (auto closed = set_mode(own, mode_of(own) & mode); !closed) return closed;
    return make_directory(here_path(directory, key));
}

Result<void> put_limits(const std::string& directory, std::string_view key, const TenantLimits& limits, unsigned mode,
                        const std::string& limits_of_template) {
    if (auto made = make_here(directory, key, mode); !made) return made;
    const auto path = limits_path(here_path(directory, key));
    auto closed = limits;
    bind_devices(closed);
    if (::access(path.c_str(), F_OK) != 0 && key != everyone_key && !is_template(key))
        closed.first_grants = first_grants(directory, key, limits);
    if (limits_of_template.empty()) return LimitsWriter::publish(path, closed);
    const auto from = LimitsSegment::open(limits_of_template, LimitsSegment::Parts::all);
    return from ? LimitsWriter::publish_instance(path, closed, *from) : LimitsWriter::publish(path, closed);
}

namespace {

// The directory of ledgers, on a node as a file system of its own. One with a ledger from before stays as it is.
Result<void> make_room(const std::string& path, const std::string& ledger) {
    if (auto made = make_directory(path); !made) return made;
    if (!path.starts_with(std::string(system_directory) + "/") || ::access(ledger.c_str(), F_OK) == 0) return {};
    return mount_ledgers(path);
}

bool is_full(const std::string& path) {
    struct statvfs room {};
    constexpr std::uint64_t least = 2 << 20;
    return ::statvfs(path.c_str(), &room) == 0 && (std::uint64_t{room.f_bavail} * room.f_frsize < least || room.f_favail < 80);
}

// Ledgers that were moved aside may have taken all room. False when there is none.
bool remove_asides(const std::string& path) {
    std::vector<std::string> asides;
    for (const auto& name : directory_names(path))
        if (name.find(".unusable.") != std::string::npos) asides.push_back(path + "/" + name);
    for (const auto& aside : asides) Ledger::remove(aside);
    return !asides.empty();
}

// With a list, the mode shows the list's mask.
bool same_rights(const FileRights& a, const FileRights& b) {
    return a.owner == b.owner && a.group == b.group && a.acl == b.acl && (!a.acl.empty() || a.mode == b.mode);
}

// Of a ledger that was there already, whose tenant may have other members now.
Result<void> give_rights(const std::string& ledger, const LedgerAccess& access) {
    auto wanted = rights_for(access);
    wanted.owner = wanted.owner.value_or(::geteuid());
    wanted.group = wanted.group.value_or(::getegid());
    // Nobody else can enter what was made while no member was known.
    for (const auto& inside : {ledger, lock_directory(ledger)})
        if (const auto mode = directory_mode(wanted); mode_of(inside) != mode)
            if (auto opened = set_rights(inside, {mode, {}, {}, {}}); !opened) return opened;
    if (const auto now = rights_of(data_path(ledger)); now && same_rights(*now, wanted)) return {};
    for (std::uint32_t slot = 0; slot < owner_slots; slot += owners_per_lock_file)
        if (auto set = set_rights(lock_path(ledger, slot), wanted); !set) return set;
    return set_rights(data_path(ledger), wanted);
}

}  // namespace

void free_room(const std::string& here) {
    const auto path = here + "/ledgers";
    if (!is_mount_point(path) || !is_full(path)) return;
    Ledger::cut_growth(ledger_path(here));
    remove_asides(path);
    if (!is_full(path)) return;
    unmount_ledgers(path);
    (void)mount_ledgers(path);
}

Result<std::string> put_ledger(const TenantPlace& place, const LedgerAccess& access) {
    const auto path = ledger_path(place.here);
    if (auto made = make_room(place.here + "/ledgers", path); !made) return Error{made.error()};
    free_room(place.here);
    auto aside = Ledger::replace_unusable(path, access);
    if (!aside && remove_asides(place.here + "/ledgers")) aside = Ledger::replace_unusable(path, access);
    if (!aside) return aside;
    auto given = give_rights(path, access);
    if (!given) {  // whoever may write in its directory has taken files away
        aside = Ledger::replace(path, access);
        if (!aside) return aside;
        given = give_rights(path, access);
    }
    if (!given) return Error{given.error()};
    return aside;
}

Result<void> open_directory(const std::string& directory, std::string_view key, unsigned mode) {
    return set_mode(tenant_directory(directory, key), mode);
}

void remove_unused_ledger(const TenantPlace& place) {
    if (!place.has_ledger() || has_owners(place)) return;
    std::error_code ignored;
    unmount_ledgers(place.here + "/ledgers");
    fs::remove_all(place.here + "/ledgers", ignored);
}

namespace {

// What tells whether somebody uses a ledger that cannot be read. True also where that cannot be found out.
bool has_locks(const std::string& path) {
    for (std::uint32_t first = 0; first < owner_slots; first += owners_per_lock_file) {
        const auto file = LockFile::open(lock_path(path, first));
        if (!file && ::access(lock_path(path, first).c_str(), F_OK) == 0) return true;
        for (std::uint32_t slot = first; file && slot < first + owners_per_lock_file; ++slot)
            if (file->holder(slot) != LockFile::Holder::nobody) return true;
    }
    return false;
}

}  // namespace

bool has_owners(const TenantPlace& place) {
    const auto path = ledger_path(place.here);
    Ledger::cut_growth(path);
    auto ledger = Ledger::open(path);
    if (!ledger) return has_locks(path);
    ledger->reap();
    return !ledger->owners().empty();
}

void remove_tenant_files(const std::string& directory, const TenantPlace& place) {
    std::error_code ignored;
    ::unlink(limits_path(place.here).c_str());  // first: nobody is sent there any more
    unmount_ledgers(place.here + "/ledgers");
    fs::remove_all(tenant_directory(directory, place.key), ignored);
}

bool has_own_limits(const TenantPlace& place) {
    const auto limits = LimitsSegment::open(limits_path(place.here), LimitsSegment::Parts::all);
    return limits && rdmaquota::has_own_limits(*limits);
}

namespace {

// Directories without limits: what a process could not unmount, or was killed while it removed.
void remove_remnants(const std::string& directory) {
    std::vector<std::string> remnants;
    const auto tenants = tenants_directory(directory);
    for (const auto& name : directory_names(tenants))
        if (::access(limits_path(tenants + "/" + name + "/here").c_str(), F_OK) != 0) remnants.push_back(name);
    for (auto& key : remnants) {
        std::replace(key.begin(), key.end(), '+', '/');
        remove_tenant_files(directory, {key, here_path(directory, key)});
    }
}

// Tenants of templates that were above others, which are gone. A child's key sorts behind its parent's.
void remove_childless(const std::string& directory, const Policy& policy) {
    std::set<std::string, std::less<>> parents;
    const auto places = tenant_places(directory);
    for (auto place = places.rbegin(); place != places.rend(); ++place)
        if (!place->has_ledger() && !parents.contains(place->key) && template_of(policy, place->key) && !has_own_limits(*place))
            remove_tenant_files(directory, *place);
        else
            for (auto above = parent_of(place->key); above != node_tenant; above = parent_of(above))
                parents.emplace(above);
}

}  // namespace

std::vector<std::string> remove_ended(const std::string& directory, const Policy& policy) {
    std::vector<std::string> in_use;
    for (const auto& place : tenant_places(directory)) {
        if (in_policy(policy, place.key)) continue;
        if (has_owners(place)) in_use.push_back(place.key);
        else remove_tenant_files(directory, place);
    }
    remove_childless(directory, policy);
    remove_remnants(directory);
    return in_use;
}

}  // namespace rdmaquota
