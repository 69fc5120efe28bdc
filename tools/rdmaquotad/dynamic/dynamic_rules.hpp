// The rules of [[dynamic]]: decides which limits the node's state asks for. dynamic_limits.hpp changes them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "policy/limit_key.hpp"
#include "policy/sidecar.hpp"

namespace rdmaquota {

// What the rules depend on. Tenants are named by their keys.
struct Surroundings {
    // Those that "*" stands for: the machine's, not the ledger's, which tenants can invent.
    std::vector<std::string> devices;
    // Those that a rule's `tenant` stands for.
    std::function<std::vector<std::string>(const std::string& tenant)> tenants;
    // What all tenants use, as far as it may change the limits of `tenant`, and what that tenant uses.
    std::function<std::uint64_t(const std::string& tenant, const std::string& device, Resource)> usage;
    std::function<std::uint64_t(const std::string& tenant, const std::string& device, Resource)> tenant_usage;
    // The limit as configured; `unlimited` where there is none.
    std::function<std::uint64_t(const LimitKey&)> configured;
    // For CapacityOf::node and ::device; 0 when unknown.
    std::function<std::uint64_t(CapacityOf, const std::string& device, Resource)> capacity;
    // Whether a rule holds the limit already, of this daemon or an earlier one.
    std::function<bool(const LimitKey&)> held;
};

struct WantedLimit {
    std::uint64_t limit;
    std::string reason;  // "[[dynamic]] rule 1: mr_bytes at 92 % of 100 GiB, until 70 %"
};
using WantedLimits = std::map<LimitKey, WantedLimit>;

class DynamicRules {
public:
    explicit DynamicRules(std::vector<DynamicRule> rules = {}) : rules_(std::move(rules)) {}

    // The limits that are to differ from the configured ones; where rules meet, the smallest. All others are to be as
    // configured.
    WantedLimits evaluate(const Surroundings& now);
    std::size_t size() const noexcept { return rules_.size(); }

private:
    struct Watched {
        std::size_t rule;
        std::string tenant, device;
        auto operator<=>(const Watched&) const = default;
    };
    using Above = std::map<Watched, bool>;
    void evaluate(std::size_t number, const std::string& device, const Surroundings& now, const Above& before,
                  WantedLimits& wanted);
    std::string reason_to_change(const Watched& watched, std::uint64_t usage, std::uint64_t capacity, const Above& before,
                                 bool held);

    std::vector<DynamicRule> rules_;
    Above above_;  // whether usage was last seen above, and not yet below
};

}  // namespace rdmaquota
