// The rules of [[dynamic]]: decides which limits the node's state asks for. dynamic_limits.hpp changes them.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "policy/sidecar.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota {

// What the rules depend on.
struct Surroundings {
    // Those that "*" stands for: the machine's, not the ledger's, which tenants can invent.
    std::vector<std::string> devices;
    std::function<std::uint64_t(const std::string& device, Resource)> usage;
    // The limit as configured; `unlimited` where there is none.
    std::function<std::uint64_t(Scope, const std::string& device, Resource)> configured;
    // For CapacityOf::node and ::device; 0 when unknown.
    std::function<std::uint64_t(CapacityOf, const std::string& device, Resource)> capacity;
    // Whether an earlier daemon changed the limit already.
    std::function<bool(Scope, const std::string& device, Resource)> changed;
};

struct WantedLimit {
    Scope scope;
    std::string device;
    Resource resource;
    std::uint64_t limit;
    std::string reason;  // "mr_bytes at 92 % of 100 GiB, tightened from 90 % until 70 %"
};

class DynamicRules {
public:
    explicit DynamicRules(std::vector<DynamicRule> rules = {}) : rules_(std::move(rules)) {}

    // The limits that are to differ from the configured ones, at most one per cell; where rules meet, the smallest.
    // All others are to be as configured.
    std::vector<WantedLimit> evaluate(const Surroundings& now);
    std::size_t size() const noexcept { return rules_.size(); }

private:
    void evaluate(std::size_t number, const std::string& device, const Surroundings& now, std::vector<WantedLimit>& wanted);

    std::vector<DynamicRule> rules_;
    // By rule and device: whether usage was last seen above, and not yet below.
    std::map<std::pair<std::size_t, std::string>, bool> above_;
};

}  // namespace rdmaquota
