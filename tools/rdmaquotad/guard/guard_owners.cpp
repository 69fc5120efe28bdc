#include "tools/rdmaquotad/guard/guard_owners.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "policy/subject_text.hpp"
#include "tools/common/file_text.hpp"
#include "tools/common/guard/guard_who.hpp"
#include "tools/rdmaquotad/bypass/process_info.hpp"

namespace rdmaquota {
namespace {

// As the program computes it.
u64 hash_of(const ProcessIds& ids) {
    if (!ids.user || !ids.group || ids.groups.size() > most_hashed_groups) return 0;
    u64 hash = GUARD_HASH_BEGIN;
    hash = GUARD_HASH_NEXT(hash, *ids.user);
    hash = GUARD_HASH_NEXT(hash, *ids.group);
    hash = GUARD_HASH_NEXT(hash, ids.groups.size());
    for (const auto group : ids.groups) hash = GUARD_HASH_NEXT(hash, group);
    return GUARD_HASH_END(hash);
}

ProcessIds ids_of(std::uint32_t pid) { return process_ids(file_text(fmt::format("/proc/{}/status", pid))); }

// Still whoever opened the file, not root after an exec of a program that is set-user-ID or set-group-ID. Root itself may become
// a user.
bool is_user(const guard_file& file) {
    if (file.uid == 0) return true;
    const auto ids = ids_of(file.pid);
    return ids.user == file.uid && ids.group == file.gid;
}

}  // namespace

// One that goes on remembers who was greedy.
GuardOwners::GuardOwners(const Node& node, GuardProgram& program, const GuardRows& rows)
    : node_(node), program_(program), rows_(rows) {
    for (const auto& who : program_.known())
        if (who.cgroup == 0 && who.ids != 0) greedy_.insert(GuardProgram::bytes_of(who));
}

// In a directory that is one tenant's own, there are no matches.
bool GuardOwners::knows_cgroups() const { return node_.policy() != nullptr && node_.policy()->asks_for_cgroup(); }
bool GuardOwners::knows_ids() const { return node_.policy() != nullptr && node_.policy()->asks_for_ids(); }

namespace {

// Whom the program sees when this process opens a device now; nothing for one that has too many groups, or is gone.
std::optional<guard_who> who_is(std::uint32_t pid, bool by_cgroup, bool by_ids) {
    guard_who who{guard_any, guard_any, 0, 0};
    if (by_ids) {
        const auto ids = ids_of(pid);
        who.ids = hash_of(ids);
        who.uid = ids.user.value_or(0);
    }
    if (by_cgroup) who.cgroup = cgroup_id(std::string(cgroup_path(file_text(fmt::format("/proc/{}/cgroup", pid)))));
    if (who.ids == 0 || who.cgroup == 0) return std::nullopt;
    return who;
}

}  // namespace

void GuardOwners::introduce_all(const std::vector<std::string>& devices) {
    const auto& words = program_.words();
    __atomic_store_n(words.asks_cgroup, knows_cgroups(), __ATOMIC_RELAXED);
    __atomic_store_n(words.asks_ids, knows_ids(), __ATOMIC_RELAXED);
    told_ = greedy_;
    for (const auto& device : devices)
        if (const auto stamp = rows_.waiting_stamp(device)) know({0, 0, device_hash(device), 0}, *stamp);
    introduce_bound(devices);
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
        const auto name = entry.path().filename().string();
        if (name.find_first_not_of("0123456789") == name.npos)
            introduce(static_cast<std::uint32_t>(std::stoul(name)), devices);
    }
    program_.know_only(told_);
}

// Bound cgroups are tried before all else, so who is in one is known before it runs.
void GuardOwners::introduce_bound(const std::vector<std::string>& devices) {
    for (const auto& [cgroup, tenant] : bound_cgroups(node_.decompiled()))
        for (const auto& device : devices)
            if (const auto stamp = rows_.stamp(tenant, device)) know({cgroup, guard_any, device_hash(device), 0}, *stamp);
}

void GuardOwners::know(const guard_who& who, const guard_stamp& stamp) {
    program_.know(who, stamp);
    told_.insert(GuardProgram::bytes_of(who));
}

// Who is another one by the end of this was looked at in the middle of a change.
void GuardOwners::introduce(std::uint32_t pid, const std::vector<std::string>& devices) {
    const auto before = who_is(pid, knows_cgroups(), knows_ids());
    if (!before) return;
    const auto tenant = node_.tenant_of(pid);
    const auto after = who_is(pid, knows_cgroups(), knows_ids());
    if (!after || after->ids != before->ids || after->uid != before->uid || after->cgroup != before->cgroup) return;
    for (const auto& device : devices)
        if (const auto stamp = rows_.stamp(tenant, device))
            know({before->cgroup, before->ids, device_hash(device), before->uid}, *stamp);
}

void GuardOwners::settle() {
    program_.settle(0, {});
    const auto* files = program_.files();
    for (std::uint32_t i = 0; i < opener_slots; ++i)
        if (files[i].id != 0 && files[i].stamped == 0) settle(files[i], program_.words().openers[i]);
}

// A process that is gone, whose pid another one has, or that has become another user meanwhile, is in `default`.
bool GuardOwners::is_opener(const guard_file& file) {
    const auto now = process_info(file.pid);
    if (!now || !is_user(file)) return false;
    return now->start_time == file.since / (1'000'000'000ULL / static_cast<u64>(::sysconf(_SC_CLK_TCK)));
}

// Who made too much while it was not known makes nothing the next time until it is known: else whoever makes cgroups could do
// so again and again.
void GuardOwners::settle(const guard_file& file, const kernel_use& opener) {
    const auto id = file.id;
    const guard_who user{0, file.ids, file.who.device, 0};
    const auto pid = file.pid;
    const std::string device(opener.device, strnlen(opener.device, sizeof opener.device));
    const auto tenant = node_.tenant_of(pid);
    const bool there = is_opener(file);  // asked after that: then it was there all the time
    const auto stamp = rows_.stamp(there ? tenant : default_tenant, device);
    if (!stamp || file.id != id) return;
    if (!program_.settle(id, *stamp)) return;
    const bool exceeded = std::any_of(stamp->rows, stamp->rows + stamp->count, [&](u32 row) { return rows_.is_exceeded(row); });
    if (user.ids != 0 && exceeded && greedy_.size() < most_greedy) {
        know(user, *stamp);  // at once, since it may open another device meanwhile
        greedy_.insert(GuardProgram::bytes_of(user));
    }
    if (there) introduce(pid, {device});
}

}  // namespace rdmaquota
