#include "tools/rdmaquotad/guard/guard_owners.hpp"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "tools/common/devices.hpp"
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

}  // namespace

bool started_then(const guard_file& file) {
    const auto info = process_info(file.pid);
    return info && info->start_time == file.since / (1'000'000'000ULL / static_cast<u64>(::sysconf(_SC_CLK_TCK)));
}

namespace {

// Asked after `now` was read, this process was there then. A process that is gone, whose pid another one has, or that has become
// another user meanwhile, is in `default`.
bool is_opener(const guard_file& file, const Subject& now) { return is_user(file, now) && started_then(file); }

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

// A thread can have other ids than its process, and be in another cgroup.
Result<ProcessSubject> thread_of(u32 pid, u32 tid) {
    return ProcessSubject::of(static_cast<pid_t>(tid), fmt::format("/proc/{}/task", pid));
}

}  // namespace

// Changes what the program compares last, when all running processes are resolved.
void GuardOwners::introduce_all(const std::vector<std::string>& devices) {
    introduced_ = std::chrono::steady_clock::now();
    told_.clear();
    for (const auto& device : devices)
        if (const auto stamp = rows_.waiting_stamp(device)) know({0, 0, uverbs_number(device), 0}, *stamp);
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
            if (const auto stamp = rows_.stamp(tenant, device)) know({cgroup, guard_any, uverbs_number(device), 0}, *stamp);
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
        if (stamp) know({who->cgroup, who->ids, uverbs_number(device), who->uid}, *stamp);
        rows_are_missing_ |= !stamp;
    }
}

void GuardOwners::introduce(const guard_unknown& unknown) {
    constexpr unsigned most_tries = 20;
    const auto device = uverbs_identity(unknown.who.uverbs);
    const auto subject = thread_of(unknown.pid, unknown.tid);
    if (subject && node_.lacks_tenant_of(*subject) && !make_tenant_(*subject)) return;
    if (subject) introduce(*subject, node_.tenant_of(*subject), {device});
    if (told_.contains(GuardProgram::bytes_of(unknown.who))) return;
    if (failures_.size() > most_told) failures_.clear();
    if (++failures_[GuardProgram::bytes_of(unknown.who)] < most_tries) return;
    if (const auto stamp = rows_.stamp(default_tenant, device)) know(unknown.who, *stamp);  // the sidecar cannot resolve it
}

void GuardOwners::settle() {
    program_.settle(0, {});
    const auto* files = program_.files();
    for (std::uint32_t i = 0; i < opener_slots; ++i)
        if (load_relaxed(files[i].unstamped) != 0) settle(files[i], program_.words().openers[i]);
    judge_settled();
}

void GuardOwners::settle(const guard_file& file, const kernel_use& opener) {
    const auto id = load_relaxed(file.unstamped);
    const auto device = uverbs_identity(opener.uverbs);
    auto subject = thread_of(file.pid, file.tid);
    if (!subject) subject = ProcessSubject::of(static_cast<pid_t>(file.pid));
    const bool there = subject && is_opener(file, subject->view());
    if (there && node_.lacks_tenant_of(*subject) && !make_tenant_(*subject)) return;
    const auto tenant = there ? node_.tenant_of(*subject) : std::string(default_tenant);
    const auto stamp = rows_.stamp(tenant, device);
    rows_are_missing_ |= !stamp;
    if (!stamp || id == 0 || load_relaxed(file.id) != id || !program_.settle(id, *stamp)) return;
    // Only a file that was opened by write(2) under a guard with a running sidecar: such a file waits in the node's row alone.
    if (load_relaxed(opener.whole) == whole_seen && file.waiting.count == 1) settled_.emplace_back(&file - program_.files(), id);
    if (there) introduce(*subject, tenant, {device});
}

// A limit of something that was made by the file, too.
bool GuardOwners::is_exceeded(const guard_file& file) const {
    GuardAmounts made;
    for (u32 place = 0; place < guard_resources; ++place) made[place] = load_relaxed(file.waited[place]) + load_relaxed(file.held[place]);
    const auto count = std::min<u32>(file.stamp.count, guard_depth);
    return std::any_of(file.stamp.rows, file.stamp.rows + count, [&](u32 row) { return rows_.is_exceeded(row, made); });
}

// A file is judged once its waiting amounts have moved to its rows, which a thread may still be about to do.
void GuardOwners::judge_settled() {
    std::erase_if(settled_, [&](const auto& settled) {
        const auto& file = program_.files()[settled.first];
        if (load_relaxed(file.id) != settled.second) return true;
        if ((load_relaxed(file.waits) & waits_moved) == 0) return false;
        if (is_exceeded(file)) exceeding_.push_back(settled.first);
        return true;
    });
}

void GuardOwners::refresh() {
    auto* files = program_.files();
    for (std::uint32_t i = 0; i < opener_slots; ++i) {
        auto& file = files[i];
        if (load_relaxed(file.id) == 0 || (load_relaxed(file.waits) & waits_known) == 0) continue;
        const auto own = file.stamp.rows[file.process_row != 0 ? 1 : 0];
        const auto* meaning = rows_.meaning(own);
        const auto stamp = meaning != nullptr ? rows_.stamp(meaning->key, meaning->identity) : std::nullopt;
        if (!stamp || (stamp->exempt == file.stamp.exempt && stamp->deny_errno == file.stamp.deny_errno)) continue;
        __atomic_store_n(&file.closely, 1, __ATOMIC_RELAXED);
        __atomic_store_n(&file.stamp.exempt, stamp->exempt, __ATOMIC_RELAXED);
        __atomic_store_n(&file.stamp.deny_errno, stamp->deny_errno, __ATOMIC_RELAXED);
    }
}

}  // namespace rdmaquota
