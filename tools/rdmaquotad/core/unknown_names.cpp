#include "tools/rdmaquotad/core/unknown_names.hpp"

#include <set>
#include <sstream>

#include "shm/paths.hpp"
#include "shm/policy/policy_lock.hpp"
#include "tools/common/names.hpp"
#include "tools/common/tenant_files.hpp"

namespace rdmaquota {
namespace {

constexpr auto patience = std::chrono::milliseconds(100);

std::set<std::string> names_of(const NodePolicy& policy) {
    std::set<std::string> names;
    for (auto& [tenant, name] : policy.unknown_names()) names.insert(std::move(name));
    return names;
}

// A line for each name that is known now.
std::string known_among(const std::set<std::string>& names) {
    std::string text;
    for (const auto& name : names)
        if (is_known_name(name)) text += name + "\n";
    return text;
}

// The matches again, and who may charge the tenants whose names were unknown. Limits stay as they are.
Result<void> compile_again(const std::string& directory) {
    const auto path = node_policy_path(directory);
    const auto lock = PolicyLock::take(path, patience);
    if (!lock) return Error{lock.error()};
    const auto running = NodePolicy::read(path);
    if (!running) return Error{running.error()};
    const auto policy = running->decompile();
    const auto names = name_lookup();
    for (const auto& [name, unknown] : running->unknown_names()) {
        const auto* tenant = policy.find(name);
        const TenantPlace place{name, here_path(directory, name)};
        if (tenant == nullptr || !place.has_ledger()) continue;
        if (auto put = put_ledger(place, access_of(*tenant, names)); !put) return Error{put.error()};
    }
    return publish_node_policy(*lock, path, policy, names);
}

}  // namespace

Result<std::vector<std::string>> UnknownNames::try_again() {
    std::vector<std::string> found;
    if (question_) {
        const auto answer = question_->answer(std::chrono::milliseconds(0));
        if (!answer && Clock::now() - asked_ < between_tries) return found;
        question_.reset();
        std::istringstream lines(answer.value_or(""));
        for (std::string line; std::getline(lines, line);) found.push_back(line);
        if (found.empty()) return found;
        if (auto done = compile_again(node_.directory()); !done) return Error{done.error()};
        return found;
    }
    if (node_.policy() == nullptr || !node_.writable() || Clock::now() - asked_ < between_tries) return found;
    asked_ = Clock::now();
    auto names = names_of(*node_.policy());
    if (!names.empty()) question_.emplace([names = std::move(names)] { return known_among(names); });
    return found;
}

}  // namespace rdmaquota
