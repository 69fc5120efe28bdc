// Limits in percent: follows what devices have, as they come, change, or turn out to have less.
#pragma once

#include <string>
#include <vector>

#include "tools/rdmaquotad/dynamic/device_capacity.hpp"
#include "tools/rdmaquotad/node/node.hpp"

namespace rdmaquota {

class Percentages {
public:
    Percentages(Node& node, const DeviceCapacity& learned) : node_(node), learned_(learned) {}

    // Asks each of `devices` once, and does not wait: what asks a new one is a process that the guard has to resolve meanwhile. Does
    // nothing where no limit is a percentage.
    void resolve(const std::vector<std::string>& devices);

private:
    LimitRow capacity_of(const std::string& device) const;

    Node& node_;
    const DeviceCapacity& learned_;
    std::string said_;  // the last error
};

}  // namespace rdmaquota
