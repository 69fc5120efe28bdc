#include "tools/rdmaquotad/node/instances.hpp"

#include <algorithm>
#include <chrono>

#include <sys/stat.h>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "shm/paths.hpp"
#include "shm/policy/policy_lock.hpp"
#include "tools/common/tenants/container.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/tenants/subject.hpp"
#include "tools/common/tenants/template_tenants.hpp"
#include "tools/common/tenants/transient.hpp"
#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {
namespace {

constexpr auto patience = std::chrono::milliseconds(100);

// One for each user, and nothing that a user could choose. A user stays; a job's cgroup does not.
bool is_of_users(const TenantPolicy& from) {
    return from.name.find("{user}") != from.name.npos && std::count(from.name.begin(), from.name.end(), '{') == 1;
}

Result<void> make_now(const std::string& directory, const std::string& from, const std::string& key) {
    const auto lock = PolicyLock::take(node_policy_path(directory), patience);
    if (!lock) return Error{lock.error()};
    const auto policy = running_policy(directory);
    if (!policy) return Error{policy.error()};
    const auto* there = policy->find(from);
    if (there == nullptr) return Error{"the policy was just replaced; ask again"};
    return make_instance(directory, *policy, *there, key, access_of_instance(*there, key, name_lookup()));
}

}  // namespace

Instances::Instances(Node& node) : Instances(node, make_now) {}

Instances::Instances(Node& node, Maker maker, std::string cgroup_root)
    : node_(node), maker_(std::move(maker)), cgroup_root_(std::move(cgroup_root)) {}

// Names take as long as the directory service that knows them.
Result<void> Instances::make(const std::string& from, const std::string& key) {
    if (making_ && !making_->answer(std::chrono::milliseconds(0)) && Clock::now() - asked_ < given_up)
        return Error{"another tenant is still being made, which waits for the names of users; ask again"};
    asked_ = Clock::now();
    making_.emplace([&] {
        const auto made = maker_(node_.directory(), from, key);
        return made ? std::string() : made.error();
    });
    const auto answer = making_->answer(answered_within);
    if (!answer) return Error{"it is still being made, which waits for the names of users"};
    making_.reset();
    node_.refresh();
    const auto* tenant = node_.find(key);
    if (tenant != nullptr && tenant->has_ledger()) return {};
    return Error{answer->empty() ? std::string("it could not be made") : *answer};
}

std::size_t Instances::most_for(const ProcessSubject& subject, uid_t user) const {
    if (user == 0) return most_tenants;
    struct stat status {};
    const auto path = cgroup_root_ + std::string(subject.view().cgroup);
    return ::stat(path.c_str(), &status) == 0 && status.st_uid == 0 ? most_in_cgroups_of_root : most_for_user;
}

Result<void> Instances::check_room(const ProcessSubject& subject, uid_t user) {
    const auto now = Clock::now();
    std::erase_if(given_, [&](const auto& entry) { return now - entry.second.since > kept_at_rest; });
    auto& given = given_.try_emplace(user, Given{0, now}).first->second;
    const auto most = most_for(subject, user);
    if (given.count >= most) {
        if (!std::exchange(given.said, true))
            log(Priority::warning, fmt::format("uid {} asked for more than {} tenants in ten minutes: its programs in further cgroups are "
                                               "in tenant default until these have passed", user, most));
        return Error{fmt::format("uid {} has asked for too many tenants; wait", user)};
    }
    ++given.count;
    if (node_.tenants().size() < most_tenants) return {};
    return Error{fmt::format("there are {} tenants already", node_.tenants().size())};
}

Result<MadeInstance> Instances::make_for(pid_t pid, uid_t user) {
    if (node_.policy() == nullptr) return Error{"this directory is one tenant's own"};
    const auto subject = ProcessSubject::of(pid);
    if (!subject) return Error{subject.error()};
    if (subject->view().user != user) return Error{fmt::format("process {} is not uid {}'s", pid, user)};
    return make_for(*subject, user);
}

Result<MadeInstance> Instances::make_for(const ProcessSubject& subject, uid_t user) {
    const auto verdict = node_.policy()->find(subject.view());
    const auto* there = node_.find(verdict.tenant);
    const bool whole = there != nullptr && there->has_ledger();
    if (whole || !is_template(verdict.from)) return MadeInstance{verdict.tenant, false};
    if (!node_.writable()) return Error{"this rdmaquotad may not make tenants; run it as root"};
    if (auto room = check_room(subject, user); !room) return Error{room.error()};
    if (auto made = make(verdict.from, verdict.tenant); !made) return Error{made.error()};
    told_(verdict.tenant);
    return MadeInstance{verdict.tenant, true};
}

bool Instances::has_rested(const Tenant& tenant) {
    const auto now = Clock::now();
    const auto& ledger = tenant.ledger();
    const auto [known, is_new] = rests_.try_emplace(tenant.key(), Rest{ledger.claims(), now});
    if (!ledger.at_rest() || known->second.claims != ledger.claims()) known->second = {ledger.claims(), now};
    return now - known->second.since >= kept_at_rest;
}

bool Instances::remove_unused() {
    if (node_.policy() == nullptr || !node_.writable()) return false;
    std::erase_if(rests_, [&](const auto& entry) { return node_.find(entry.first) == nullptr; });
    if (has_ended_bindings(node_.decompiled())) {
        drop_ended_bindings(node_.directory(), patience);
        node_.refresh();
    }
    std::vector<TenantPlace> unused;
    bool ended = false;
    for (const auto* tenant : node_.with_ledger()) {
        const auto& policy = node_.decompiled();
        const auto* from = template_of(policy, tenant->key());
        if (from == nullptr)
            ended |= policy.find(tenant->key()) == nullptr && tenant->ledger().at_rest();
        else if (!is_of_users(*from) && has_rested(*tenant) && !has_own_limits(tenant->place()))
            unused.push_back(tenant->place());
    }
    if (!ended && unused.empty()) return false;
    const auto lock = PolicyLock::take(node_policy_path(node_.directory()), patience);
    const auto policy = lock ? running_policy(node_.directory()) : Result<Policy>(Error{});
    if (!policy) return false;  // another time
    for (const auto& place : unused)
        if (is_inner(*policy, place.key))
            remove_unused_ledger(place);
        else if (!has_owners(place))
            remove_tenant_files(node_.directory(), place);
    (void)remove_ended(node_.directory(), *policy);
    return node_.refresh(), true;
}

}  // namespace rdmaquota
