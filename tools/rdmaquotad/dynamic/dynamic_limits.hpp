// Limits that follow the node's state: writes the limits that the rules ask for into the running policy, and records
// them in changed.json (tools/common/limit_changes.hpp).
//
// A limit is one word, so none is ever half set. The record is written before a limit leaves its configured value and
// again after it is restored. A daemon that dies leaves limits as they are, and its successor goes on from the record.
// A limit that somebody else sets counts as configured from then on.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tools/common/limit_changes.hpp"
#include "tools/rdmaquotad/dynamic/dynamic_rules.hpp"
#include "tools/rdmaquotad/core/quota_directory.hpp"
#include "tools/rdmaquotad/core/node_events.hpp"

namespace rdmaquota {

class DynamicLimits {
public:
    // Capacity and usage of a device; 0 when unknown.
    using Capacity = std::function<std::uint64_t(CapacityOf, const std::string& device, Resource)>;
    using Usage = std::function<std::uint64_t(const std::string& device, Resource)>;

    DynamicLimits(QuotaDirectory& node, NodeEvents& events, Usage usage, Capacity capacity);

    // Call it when the running policy was replaced: these are its rules.
    void start(std::vector<DynamicRule> rules);
    // Evaluates the rules and changes limits accordingly. Needs a usable quota directory.
    void apply();
    // Restores all limits to the configured ones; for an orderly end.
    void restore();

    std::size_t rules() const noexcept { return rules_.size(); }
    const std::vector<ChangedLimit>& changes() const noexcept { return changes_; }

private:
    ChangedLimit* find(Scope scope, const std::string& device, Resource resource);
    std::optional<LimitsWriter> policy_writer();
    void forget_foreign(LimitsWriter& writer);
    void write_record();
    void change_to(const std::vector<WantedLimit>& wanted, LimitsWriter& writer);
    bool put(std::vector<ChangedLimit> record, const std::vector<ChangedLimit>& back, LimitsWriter& writer);
    void emit(std::string_view kind, const ChangedLimit& change, std::uint64_t before, std::uint64_t after);
    Surroundings surroundings();

    QuotaDirectory& node_;
    NodeEvents& events_;
    Usage usage_;
    Capacity capacity_;
    DynamicRules rules_;
    std::vector<ChangedLimit> changes_;
    bool said_unwritable_ = false;
};

}  // namespace rdmaquota
