#include "tools/rdmaquotad/node/tenant.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>

#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

constexpr auto patience = std::chrono::milliseconds(100);

struct stat status_of(const std::string& path) {
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) status = {};
    return status;
}

// A new ledger has the rights of the one that it replaces; this is for one that has none to read.
LedgerAccess access_without_rights(const std::string& key) {
    return key == default_tenant ? LedgerAccess::everyone() : LedgerAccess{};
}

}  // namespace

Tenant::Tenant(TenantPlace place)
    : place_(std::move(place)),
      name_(place_.key),
      ledger_(ledger_path(place_.here), access_without_rights(place_.key)) {
    reopen();
}

void Tenant::reopen() {
    members_.reset();
    has_ledger_ = place_.has_ledger();
    if (limits_ && limits_inode_ != status_of(limits_path(place_.here)).st_ino) limits_.reset();
    refresh();
}

void Tenant::refresh() {
    if (limits_ && !limits_->superseded()) return;
    const auto path = limits_path(place_.here);
    const auto inode = status_of(path).st_ino;
    auto limits = LimitsSegment::open(path, LimitsSegment::Parts::all);
    if (!limits || limits->superseded()) return;  // its successor is being renamed into place
    limits_.emplace(std::move(*limits));
    limits_inode_ = inode;
    held_at_ = LimitsSegment::lost_generation;
    name_ = limits_->tenant();
    has_ledger_ = place_.has_ledger();
}

Result<LimitsWriter> Tenant::writer() const { return LimitsWriter::open(limits_path(place_.here), patience); }

bool Tenant::writable() const {
    return ::access(limits_path(place_.here).c_str(), W_OK) == 0 && ::access(place_.here.c_str(), W_OK) == 0;
}

const std::vector<LimitsWriter::Held>& Tenant::held() {
    if (!limits_) return held_;
    const auto generation = limits_->generation();
    if (generation != held_at_) held_ = held_limits(*limits_);
    held_at_ = generation;
    return held_;
}

const Tenant::Members& Tenant::members() {
    if (!members_ || members_->ledger != ledger_.number()) {
        const auto directory = place_.here.substr(0, place_.here.rfind('/'));
        members_ = {ledger_.number(), rights_of(data_path(ledger_.path())),
                    (status_of(directory).st_mode & S_IXOTH) != 0};
    }
    return *members_;
}

bool Tenant::admits(uid_t user, std::span<const gid_t> groups) {
    return members().open && members().rights && rdmaquota::admits(*members().rights, user, groups);
}

bool Tenant::admits_inside(uid_t user, std::span<const gid_t> groups) {
    return user == 0 || (members().rights && rdmaquota::admits(*members().rights, user, groups));
}

}  // namespace rdmaquota
