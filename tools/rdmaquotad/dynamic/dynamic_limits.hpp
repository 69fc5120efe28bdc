// Limits that follow the node's state: holds the limits that the rules ask for (LimitsWriter::hold), and releases them.
//
// A limit is one word, so none is ever half set. What is configured stays beside it, and what rules hold stands in the
// file of limits itself, with the reason: a daemon that dies leaves limits as they are, and its successor goes on from
// there. What an administrator sets meanwhile is what a rule computes from then on.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"
#include "tools/rdmaquotad/node/node_usage.hpp"
#include "tools/rdmaquotad/dynamic/dynamic_rules.hpp"

namespace rdmaquota {

class DynamicLimits {
public:
    // Capacity of a device; 0 when unknown.
    using Capacity = std::function<std::uint64_t(CapacityOf, const std::string& device, Resource)>;

    DynamicLimits(Node& node, NodeEvents& events, Capacity capacity);

    // Call it when the running policy was replaced: these are its rules.
    void start(std::vector<DynamicRule> rules);
    // Evaluates the rules and changes limits accordingly. `devices` are those of the machine.
    void apply(const std::vector<std::string>& devices, const NodeUsage& usage);
    // Releases all that rules hold; for an orderly end.
    void restore();

    std::size_t rules() const noexcept { return rules_.size(); }
    std::size_t held() const noexcept { return held_.size(); }  // limits, as of the last `apply`

private:
    using Held = std::map<LimitKey, LimitsWriter::Held>;

    Held find_held();
    Surroundings surroundings(const std::vector<std::string>& devices, const NodeUsage& usage);
    std::vector<std::string> tenants_of(const std::string& rule_tenant) const;
    std::uint64_t configured(const LimitKey& key);
    void change_to(const WantedLimits& wanted);
    void change(Tenant& tenant, const WantedLimits& wanted);
    void hold(Tenant& tenant, LimitsWriter& writer, const LimitKey& key, const WantedLimit& wanted);
    void release(Tenant& tenant, LimitsWriter& writer, const LimitKey& key);
    void emit(SidecarKind kind, const Tenant& tenant, const LimitKey& key, std::uint64_t before,
              std::uint64_t after, const std::string& why);

    Node& node_;
    NodeEvents& events_;
    Capacity capacity_;
    DynamicRules rules_;
    Held held_;
    bool said_unwritable_ = false;
};

}  // namespace rdmaquota
