#include "tools/rdmaquotad/core/quota_directory.hpp"

#include <sys/stat.h>

#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

constexpr auto patience = std::chrono::milliseconds(100);
constexpr auto between_replacements = std::chrono::minutes(1);

// 0 where there is no file.
ino_t inode_of(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

QuotaDirectory::QuotaDirectory(std::string directory) : directory_(std::move(directory)) {}

bool QuotaDirectory::refresh() {
    missing_.clear();
    open_ledger();
    return open_policy();
}

std::uint64_t QuotaDirectory::usage(const std::string& device, Resource resource) const {
    for (const auto& [number, name] : copy_.devices())
        if (name == device) return copy_.tenant_usage(number, resource);
    return 0;
}

bool QuotaDirectory::copy_ledger(LedgerCopy::Parts parts) {
    const bool read = static_cast<bool>(copy_.read(ledger_->path(), parts));
    if (read && copy_.inode() == ledger_inode_) return true;
    copy_ = LedgerCopy();
    return false;
}

// A ledger that could never be opened here is left alone: it may be another version's. Only the last one that was moved
// aside is kept, so that damaging it again and again does not fill the disk.
void QuotaDirectory::replace_damaged(const std::string& path) {
    const auto now = std::chrono::steady_clock::now();
    if (now < may_replace_) return;
    const auto aside = Ledger::replace_unusable(path, LedgerAccess::everyone());
    if (!aside || aside->empty()) return;
    if (!last_aside_.empty()) Ledger::remove(last_aside_);
    aside_ = last_aside_ = *aside;
    may_replace_ = now + between_replacements;
}

void QuotaDirectory::open_ledger() {
    const auto path = ledger_path(directory_);
    const bool same = ledger_inode_ != 0 && ledger_inode_ == inode_of(data_path(path));
    if (same && ledger_ && !ledger_->damaged()) return;
    if (same) replace_damaged(path);
    const auto inode = inode_of(data_path(path));
    auto ledger = Ledger::open(path);
    if (ledger) {
        ledger_.emplace(std::move(*ledger));
        ledger_inode_ = inode;
        return;
    }
    // Without a new one, keep the old one open: programs may use it still.
    if (same || (ledger_ && ledger_->lost())) ledger_.reset();
    if (!ledger_) missing_ = ledger.error();
}

Result<LimitsWriter> QuotaDirectory::policy_writer() const {
    return LimitsWriter::open(policy_path(directory_), patience);
}

bool QuotaDirectory::open_policy() {
    if (policy_ && !policy_->superseded()) return false;
    const auto path = policy_path(directory_);
    auto policy = LimitsSegment::open(path);
    writable_ = ::access(path.c_str(), W_OK) == 0 && ::access(directory_.c_str(), W_OK) == 0;
    if (!policy) {
        if (!policy_) missing_ = policy.error();
        return false;
    }
    if (policy->superseded()) return false;  // its successor is being renamed into place
    policy_.emplace(std::move(*policy));
    return true;
}

}  // namespace rdmaquota
