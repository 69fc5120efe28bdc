#include "tools/rdmaquotad/guard/guard_owners.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "tools/common/text/directory_names.hpp"
#include "tools/common/guard/guard_who.hpp"
#include "tools/common/guard/kernel_word.hpp"
#include "tools/rdmaquotad/bypass/process_info.hpp"

namespace rdmaquota {
namespace {

// As the program computes it.
u64 hash_of(const Subject& ids) {
    if (!ids.user || !ids.group || ids.groups.size() > most_hashed_groups) return 0;
    u64 hash = GUARD_HASH_BEGIN;
    hash = GUARD_HASH_NEXT(hash, *ids.user);
    hash = GUARD_HASH_NEXT(hash, *ids.group);
    hash = GUARD_HASH_NEXT(hash, ids.groups.size());
    for (const auto group : ids.groups) hash = GUARD_HASH_NEXT(hash, group);
    return GUARD_HASH_END(hash);
}

// Still whoever opened the file, not root after an exec of a program that is set-user-ID or set-group-ID. Root itself may become
// a user.
bool is_user(const guard_file& file, const Subject& now) {
    return file.uid == 0 || (now.user == file.uid && now.group == file.gid);
}

// Asked after `now` was read, this process was there then. A process that is gone, whose pid another one has, or that has become
// another user meanwhile, is in `default`.
bool is_opener(const guard_file& file, const Subject& now) {
    const auto info = process_info(file.pid);
    if (!info || !is_user(file, now)) return false;
    return info->start_time == file.since / (1'000'000'000ULL / static_cast<u64>(::sysconf(_SC_CLK_TCK)));
}

}  // namespace

GuardOwners::GuardOwners(const Node& node, GuardProgram& program, const GuardRows& rows, MakeTenant make_tenant)
    : node_(node), program_(program), rows_(rows), make_tenant_(std::move(make_tenant)) {}

// In a directory that is one tenant's own, there are no matches.
bool GuardOwners::knows_cgroups() const { return node_.policy() != nullptr && node_.policy()->asks_for_cgroup(); }
bool GuardOwners::knows_ids() const { return node_.policy() != nullptr && node_.policy()->asks_for_ids(); }

namespace {

// Whom the program sees when such a process opens a device; nothing for one that has too many groups, or is gone.
std::optional<guard_who> who_is(const Subject& subject, bool by_cgroup, bool by_ids) {
    guard_who who{guard_any, guard_any, 0, 0};
    if (by_ids) {
        who.ids = hash_of(subject);
        who.uid = subject.user.value_or(0);
    }
    if (by_cgroup) who.cgroup = cgroup_id(std::string(subject.cgroup));
    if (who.ids == 0 || who.cgroup == 0) return std::nullopt;
    return who;
}

}  // namespace

// What the program looks at changes last: who runs now is known by then.
void GuardOwners::introduce_all(const std::vector<std::string>& devices) {
    introduced_ = std::chrono::steady_clock::now();
    told_.clear();
    devices_ = devices;
    for (const auto& device : devices)
        if (const auto stamp = rows_.waiting_stamp(device)) know({0, 0, device_hash(device), 0}, *stamp);
    introduce_bound(devices);
    for (const auto& name : directory_names("/proc")) {
        if (name.find_first_not_of("0123456789") != name.npos) continue;
        const auto subject = ProcessSubject::of(static_cast<pid_t>(std::stoul(name)));
        if (subject && !node_.lacks_tenant_of(*subject)) introduce(*subject, node_.tenant_of(*subject), devices);
        program_.settle(0, {});  // of many processes this takes long, and the sidecar is there all the time
    }
    const auto& words = program_.words();
    __atomic_store_n(words.asks_cgroup, knows_cgroups(), __ATOMIC_RELAXED);
    __atomic_store_n(words.asks_ids, knows_ids(), __ATOMIC_RELAXED);
    program_.know_only(told_);
}

// Bound cgroups are tried before all else, so who is in one is known before it runs.
void GuardOwners::introduce_bound(const std::vector<std::string>& devices) {
    for (const auto& [cgroup, tenant] : bound_cgroups(node_.decompiled()))
        for (const auto& device : devices)
            if (const auto stamp = rows_.stamp(tenant, device)) know({cgroup, guard_any, device_hash(device), 0}, *stamp);
}

void GuardOwners::know(const guard_who& who, const guard_stamp& stamp) {
    if (program_.know(who, stamp)) told_.insert(GuardProgram::bytes_of(who));
}

bool GuardOwners::is_crowded() const {
    return told_.size() > most_told && std::chrono::steady_clock::now() - introduced_ >= between_introductions;
}

// Both its tenant and how the program knows it are found by what was read once: it may become another one at any moment.
void GuardOwners::introduce(const ProcessSubject& subject, const std::string& tenant, const std::vector<std::string>& devices) {
    const auto who = who_is(subject.view(), knows_cgroups(), knows_ids());
    if (!who) return;
    for (const auto& device : devices) {
        const auto stamp = rows_.stamp(tenant, device);
        if (stamp) know({who->cgroup, who->ids, device_hash(device), who->uid}, *stamp);
        rows_are_missing_ |= !stamp;
    }
}

void GuardOwners::introduce(pid_t pid, u32 device) {
    const auto found = std::find_if(devices_.begin(), devices_.end(), [=](const auto& name) { return device_hash(name) == device; });
    if (found == devices_.end()) return;
    const auto subject = ProcessSubject::of(pid);
    if (!subject || (node_.lacks_tenant_of(*subject) && !make_tenant_(pid))) return;
    introduce(*subject, node_.tenant_of(*subject), {*found});
}

void GuardOwners::settle() {
    program_.settle(0, {});
    const auto* files = program_.files();
    for (std::uint32_t i = 0; i < opener_slots; ++i)
        if (load_relaxed(files[i].unstamped) != 0) settle(files[i], program_.words().openers[i]);
}

void GuardOwners::settle(const guard_file& file, const kernel_use& opener) {
    const auto id = load_relaxed(file.unstamped);
    const std::string device(opener.device, strnlen(opener.device, sizeof opener.device));
    const auto subject = ProcessSubject::of(static_cast<pid_t>(file.pid));
    const bool there = subject && is_opener(file, subject->view());
    if (there && node_.lacks_tenant_of(*subject) && !make_tenant_(static_cast<pid_t>(file.pid))) return;
    const auto tenant = there ? node_.tenant_of(*subject) : std::string(default_tenant);
    const auto stamp = rows_.stamp(tenant, device);
    rows_are_missing_ |= !stamp;
    if (!stamp || id == 0 || load_relaxed(file.id) != id || !program_.settle(id, *stamp)) return;
    if (there) introduce(*subject, tenant, {device});
}

}  // namespace rdmaquota
