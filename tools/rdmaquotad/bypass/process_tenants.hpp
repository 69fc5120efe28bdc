// In which tenant processes without a slot are, by the node's matches. One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "tools/rdmaquotad/node/node.hpp"

namespace rdmaquota {

class ProcessTenants {
public:
    explicit ProcessTenants(const Node& node) : node_(node) {}

    // Reads a process again after some seconds, since it can move to another cgroup, and with another policy.
    const std::string& of(std::uint32_t pid);

private:
    using Clock = std::chrono::steady_clock;
    struct Known {
        std::string tenant;
        Clock::time_point read;
    };
    const Node& node_;
    std::uint64_t policy_ = 0;
    std::map<std::uint32_t, Known> known_;
};

}  // namespace rdmaquota
