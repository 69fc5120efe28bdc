#include "tools/rdmaquotad/node/node.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>

#include <fmt/core.h>

#include "shm/ledger/ledger_file.hpp"
#include "shm/paths.hpp"
#include "tools/common/tenants/subject.hpp"

namespace rdmaquota {
namespace {

// What is in a directory whose time is younger than this may have changed since without another time.
constexpr std::time_t settled_s = 5;

struct stat status_of(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) status = {};
    return status;
}

bool same_file(const struct stat& a, const struct stat& b) {
    return a.st_ino == b.st_ino && a.st_dev == b.st_dev && a.st_mtim.tv_sec == b.st_mtim.tv_sec &&
           a.st_mtim.tv_nsec == b.st_mtim.tv_nsec;
}

// Also with too many open files, when a directory shows nothing.
bool is_gone(const std::string& path) { return ::access(path.c_str(), F_OK) != 0 && errno == ENOENT; }

}  // namespace

Node::Node(std::string directory, LookSchedule::Now now)
    : directory_(std::move(directory)), schedule_(std::move(now)) {}

bool Node::refresh() {
    const bool was_own = std::exchange(own_, is_own_directory(directory_));
    const bool other = read_policy() || (own_ && !was_own);
    if (other || tenants_changed()) list_tenants();
    for (auto& [key, tenant] : tenants_) tenant.refresh();
    update_missing();
    return other;
}

// True when it is another one. Where it cannot be read, the one that was read last still counts.
bool Node::read_policy() {
    if (own_) {
        policy_.reset();
        decompiled_ = Policy();
        return false;
    }
    const auto path = node_policy_path(directory_);
    const auto file = status_of(path);
    if (policy_ && same_file(file, policy_file_)) return false;
    auto policy = NodePolicy::read(path);
    if (!policy) {
        if (!policy_) missing_ = policy.error();
        return false;
    }
    policy_file_ = file;
    policy_.emplace(std::move(*policy));
    decompiled_ = policy_->decompile();
    return true;
}

bool Node::tenants_changed() {
    const auto file = status_of(own_ ? directory_ : tenants_directory(directory_));
    const bool young = std::time(nullptr) - file.st_mtim.tv_sec < settled_s;
    const bool same = same_file(file, tenants_file_) && !young;
    tenants_file_ = file;
    return !same;
}

void Node::list_tenants() {
    std::set<std::string, std::less<>> there;
    for (auto& place : tenant_places(directory_)) {
        there.insert(place.key);
        const auto found = tenants_.find(place.key);
        if (found != tenants_.end()) found->second.reopen();
        else tenants_.try_emplace(place.key, std::move(place));
    }
    std::erase_if(tenants_, [&](const auto& entry) {
        return !there.contains(entry.first) && is_gone(limits_path(entry.second.place().here));
    });
    with_ledger_.clear();
    for (auto& [key, tenant] : tenants_) {
        if (!tenant.has_ledger()) continue;
        with_ledger_.push_back(&tenant);
        if (tenant.ledger().number() == 0) tenant.ledger().check();  // its owners are known from the first look on
    }
}

void Node::update_missing() {
    const auto* some = find(own_ ? std::string_view() : default_tenant);
    writable_ = some != nullptr && some->writable();
    if (!own_ && !policy_) return;  // said by read_policy
    missing_.clear();
    if (tenants_.empty())
        missing_ = fmt::format("there is no tenant in {}; run 'rdmaquota reload' as root", directory_);
    else if (some != nullptr && !some->has_ledger())
        missing_ = inspect_ledger_file(data_path(some->ledger().path())).error();
}

Tenant* Node::find(std::string_view key) {
    const auto found = tenants_.find(key);
    return found == tenants_.end() ? nullptr : &found->second;
}

std::string Node::tenant_of(std::uint32_t pid) const {
    if (!policy_) return tenants_.empty() ? std::string(default_tenant) : tenants_.begin()->first;
    const auto subject = ProcessSubject::of(static_cast<pid_t>(pid));
    return subject ? tenant_of(*subject) : std::string(default_tenant);
}

std::string Node::tenant_of(const ProcessSubject& subject) const {
    if (!policy_) return tenants_.empty() ? std::string(default_tenant) : tenants_.begin()->first;
    auto key = policy_->find(subject.view()).tenant;
    return tenants_.contains(key) ? key : std::string(default_tenant);
}

bool Node::lacks_tenant_of(const ProcessSubject& subject) const {
    if (!policy_) return false;
    const auto verdict = policy_->find(subject.view());
    const auto there = tenants_.find(verdict.tenant);
    return is_template(verdict.from) && (there == tenants_.end() || !there->second.has_ledger());
}

std::uint64_t Node::claims() const noexcept {
    std::uint64_t sum = 0;
    for (const auto* tenant : with_ledger_) sum += tenant->ledger().claims();
    return sum;
}

void Node::check(Clock::duration budget) {
    const auto begin = schedule_.now();
    const auto count = with_ledger_.size();
    for (std::size_t i = 0; i < count && schedule_.now() - begin < budget; ++i) {
        auto& ledger = with_ledger_[next_check_++ % count]->ledger();
        if (ledger.at_rest() || !schedule_.is_due(ledger.turn)) ledger.check();
    }
}

void Node::look(const std::set<std::string>& devices, Clock::duration budget) {
    std::vector<LedgerWatch*> busy;
    for (auto* tenant : with_ledger_)
        if (!tenant->ledger().at_rest()) busy.push_back(&tenant->ledger());
    schedule_.pass(busy, budget, [&](LedgerWatch& ledger) { ledger.look(scratch_, devices, schedule_.now()); });
}

void Node::look_at(LedgerWatch& ledger, const std::set<std::string>& devices) {
    if (!schedule_.is_due(ledger.turn)) return;
    schedule_.take(ledger.turn, [&] { ledger.look(scratch_, devices, schedule_.now()); });
}

}  // namespace rdmaquota
