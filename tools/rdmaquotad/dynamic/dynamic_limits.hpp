// Limits that follow the node's state: makes the running policy say what the rules ask for, and keeps
// the record of it in changed.json (tools/common/sidecar_files.hpp).
//
// A limit is one word, so none is ever half set. The record is written before a limit leaves its
// configured value and again after it has come back; a daemon that dies leaves limits as they are, and
// the next one goes on from the record. A limit that somebody else sets counts as configured from then on.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "tools/rdmaquotad/dynamic/dynamic_rules.hpp"
#include "tools/rdmaquotad/core/quota_directory.hpp"
#include "tools/rdmaquotad/core/node_events.hpp"

namespace rdmaquota {

class DynamicLimits {
public:
    // Of a device: 0 when it is not known.
    using Capacity = std::function<std::uint64_t(CapacityOf, const std::string& device, Resource)>;
    using Usage = std::function<std::uint64_t(const std::string& device, Resource)>;

    DynamicLimits(QuotaDirectory& node, NodeEvents& events, Usage usage, Capacity capacity);

    // The running policy is another one, with these rules.
    void start(std::vector<DynamicRule> rules);
    // SampleWindow, and changes what is to be changed. Needs a usable node.
    void apply();
    // All limits as configured, for an orderly end.
    void restore();

    std::size_t rules() const noexcept { return rules_.size(); }
    const std::vector<ChangedLimit>& changes() const noexcept { return changes_; }

private:
    ChangedLimit* find(Scope scope, const std::string& device, Resource resource);
    std::optional<PolicyWriter> policy_writer();
    void forget_foreign(PolicyWriter& writer);
    void write_record();
    void change_to(const std::vector<WantedLimit>& wanted, PolicyWriter& writer);
    bool put(std::vector<ChangedLimit> record, const std::vector<ChangedLimit>& back, PolicyWriter& writer);
    void tell(std::string_view kind, const ChangedLimit& change, std::uint64_t before, std::uint64_t after);
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
