#include "tools/rdmaquotad/node/unknown_names.hpp"

#include <set>
#include <sstream>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "shm/policy/policy_lock.hpp"
#include "tools/common/tenants/names.hpp"
#include "tools/common/tenants/template_tenants.hpp"
#include "tools/common/tenants/tenant_files.hpp"

namespace rdmaquota {
namespace {

constexpr auto patience = std::chrono::milliseconds(100);

std::set<std::string> names_of(const NodePolicy& policy) {
    std::set<std::string> names;
    for (auto& [tenant, name] : policy.unknown_names()) names.insert(std::move(name));
    return names;
}

// Its ledger's rights, and those of its tenants if it is a template.
Result<void> give_rights(const std::string& directory, const Policy& policy, const TenantPolicy& tenant, const NameLookup& names) {
    for (const auto& place : tenant_places(directory)) {
        const bool instance = is_template(tenant.name) && template_of(policy, place.key) == &tenant;
        if (!place.has_ledger() || (!instance && place.key != tenant.name)) continue;
        const auto access = instance ? access_of_instance(tenant, place.key, names) : access_of(tenant, names);
        if (auto put = put_ledger(place, access); !put) return Error{put.error()};
    }
    return {};
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
    std::set<std::string> tenants;
    for (const auto& [name, unknown] : running->unknown_names()) tenants.insert(name);
    for (const auto& name : tenants)
        if (const auto* tenant = policy.find(name))
            if (auto given = give_rights(directory, policy, *tenant, names); !given) return given;
    return publish_node_policy(*lock, path, policy, names);
}

constexpr char known_mark = '+', error_mark = '!';

// A line for each name that is known now and counts from now on; or one with an error.
std::string try_names(const std::string& directory, const std::set<std::string>& names) {
    std::string text;
    for (const auto& name : names)
        if (is_known_name(name)) text += fmt::format("{}{}\n", known_mark, name);
    if (text.empty()) return text;
    const auto compiled = compile_again(directory);
    return compiled ? text : error_mark + compiled.error();
}

}  // namespace

Result<std::vector<std::string>> UnknownNames::try_again() {
    std::vector<std::string> found;
    if (question_) {
        const auto answer = question_->answer(std::chrono::milliseconds(0));
        if (!answer && Clock::now() - asked_ < between_tries) return found;
        question_.reset();
        if (answer && answer->starts_with(error_mark)) return Error{answer->substr(1)};
        std::istringstream lines(answer.value_or(""));
        for (std::string line; std::getline(lines, line);) found.push_back(line.substr(1));
        return found;
    }
    if (node_.policy() == nullptr || !node_.writable() || Clock::now() - asked_ < between_tries) return found;
    asked_ = Clock::now();
    auto names = names_of(*node_.policy());
    if (!names.empty()) question_.emplace([this, names = std::move(names)] { return try_names(node_.directory(), names); });
    return found;
}

}  // namespace rdmaquota
