#include "tools/rdmaquotad/node.hpp"

#include <sys/stat.h>

#include "shm/paths.hpp"

namespace rdmaquota {
namespace {

// 0 while there is none.
std::uint64_t inode_of(const std::string& path) {
    struct stat status {};
    return ::stat(path.c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

Node::Node(std::string directory) : directory_(std::move(directory)) {}

bool Node::refresh() {
    missing_.clear();
    open_ledger();
    return open_policy();
}

std::uint64_t Node::usage(const std::string& device, Resource resource) const {
    for (const auto& [number, name] : ledger_->devices())
        if (name == device) return ledger_->tenant_usage(number, resource);
    return 0;
}

void Node::open_ledger() {
    const auto path = ledger_path(directory_);
    const auto inode = inode_of(data_path(path));
    if (ledger_ && inode == ledger_inode_ && !ledger_->lost()) return;
    auto ledger = Ledger::open(path);
    if (ledger) {
        ledger_.emplace(std::move(*ledger));
        ledger_inode_ = inode;
        return;
    }
    // While there is no other one, the one that is open is watched on: programs may have it too.
    if (ledger_ && ledger_->lost()) ledger_.reset();
    if (!ledger_) missing_ = ledger.error();
}

bool Node::open_policy() {
    if (policy_ && !policy_->superseded()) return false;
    const auto path = policy_path(directory_);
    auto policy = PolicySegment::open(path, true);
    writable_ = static_cast<bool>(policy);
    if (!policy) policy = PolicySegment::open(path);
    if (!policy) {
        if (!policy_) missing_ = policy.error();
        return false;
    }
    if (policy->superseded()) return false;  // its successor is just being put in place
    policy_.emplace(std::move(*policy));
    return true;
}

}  // namespace rdmaquota
