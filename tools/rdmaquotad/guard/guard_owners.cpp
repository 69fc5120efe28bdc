#include "tools/rdmaquotad/guard/guard_owners.hpp"

#include <algorithm>
#include <cstring>
#include <optional>

#include <fmt/core.h>
#include <unistd.h>

#include "tools/common/directory_names.hpp"
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

// A thread that had begun to count before it was known whose the file is moves in a moment what waited.
void await_moved(const guard_file& file, u64 id) {
    for (int i = 0; i < 100 && load_relaxed(file.id) == id && (load_relaxed(file.waits) & waits_moved) == 0; ++i) ::usleep(10);
}

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

void GuardOwners::introduce_all(const std::vector<std::string>& devices) {
    introduced_ = std::chrono::steady_clock::now();
    const auto& words = program_.words();
    __atomic_store_n(words.asks_cgroup, knows_cgroups(), __ATOMIC_RELAXED);
    __atomic_store_n(words.asks_ids, knows_ids(), __ATOMIC_RELAXED);
    told_ = greedy_;
    for (const auto& device : devices)
        if (const auto stamp = rows_.waiting_stamp(device)) know({0, 0, device_hash(device), 0}, *stamp);
    introduce_bound(devices);
    for (const auto& name : directory_names("/proc")) {
        if (name.find_first_not_of("0123456789") != name.npos) continue;
        if (const auto subject = ProcessSubject::of(static_cast<pid_t>(std::stoul(name)))) introduce(*subject, devices);
        program_.settle(0, {});  // of many processes this takes long, and the sidecar is there all the time
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
    if (program_.know(who, stamp)) told_.insert(GuardProgram::bytes_of(who));
}

bool GuardOwners::is_crowded() const {
    return told_.size() > most_told && std::chrono::steady_clock::now() - introduced_ >= between_introductions;
}

// Both its tenant and how the program knows it are found by what was read once: it may become another one at any moment.
void GuardOwners::introduce(const ProcessSubject& subject, const std::vector<std::string>& devices) {
    const auto who = who_is(subject.view(), knows_cgroups(), knows_ids());
    if (!who) return;
    const auto tenant = node_.tenant_of(subject);
    for (const auto& device : devices)
        if (const auto stamp = rows_.stamp(tenant, device)) know({who->cgroup, who->ids, device_hash(device), who->uid}, *stamp);
}

void GuardOwners::settle() {
    program_.settle(0, {});
    const auto* files = program_.files();
    std::vector<const guard_file*> makers;
    for (std::uint32_t i = 0; i < opener_slots; ++i) {
        if (load_relaxed(files[i].unstamped) != 0) settle(files[i], program_.words().openers[i]);
        if (load_relaxed(files[i].meanwhile) != 0) makers.push_back(&files[i]);
    }
    for (const auto* file : makers)  // once all count where they belong
        if (const auto id = load_relaxed(file->id); is_within(*file) && load_relaxed(file->id) == id) program_.forgive(id);
}

// Nothing of it waits any more, and it exceeds no limit.
bool GuardOwners::is_within(const guard_file& file) const {
    return (load_relaxed(file.waits) & waits_moved) != 0 && !is_exceeded(file);
}

// A limit of something that was made by the file, too.
bool GuardOwners::is_exceeded(const guard_file& file) const {
    GuardAmounts made;
    for (u32 place = 0; place < guard_resources; ++place) made[place] = load_relaxed(file.waited[place]) + load_relaxed(file.held[place]);
    const auto& stamp = file.stamp;
    return std::any_of(stamp.rows, stamp.rows + stamp.count, [&](u32 row) { return rows_.is_exceeded(row, made); });
}

// Who made too much while it was not known makes nothing the next time until it is known: else whoever makes cgroups could do
// so again and again.
void GuardOwners::settle(const guard_file& file, const kernel_use& opener) {
    const auto id = load_relaxed(file.unstamped);
    const guard_who user{0, file.ids, file.who.device, 0};
    const std::string device(opener.device, strnlen(opener.device, sizeof opener.device));
    const auto subject = ProcessSubject::of(static_cast<pid_t>(file.pid));
    const bool there = subject && is_opener(file, subject->view());
    const auto stamp = rows_.stamp(there ? node_.tenant_of(*subject) : std::string(default_tenant), device);
    if (!stamp) program_.forgive(id);  // what has no row, no limit holds for
    if (!stamp || id == 0 || load_relaxed(file.id) != id) return;
    if (!program_.settle(id, *stamp)) return;
    await_moved(file, id);
    if (user.ids != 0 && is_exceeded(file) && greedy_.size() < most_greedy) {
        know(user, *stamp);  // at once, since it may open another device meanwhile
        greedy_.insert(GuardProgram::bytes_of(user));
    }
    if (there) introduce(*subject, {device});
}

}  // namespace rdmaquota
