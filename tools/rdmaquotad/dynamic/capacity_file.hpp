// DIR/capacity.json, which keeps what devices turned out to have over a restart of the daemon. One thread.
#pragma once

#include <string>

#include "policy/result.hpp"
#include "tools/common/limits/percentages.hpp"
#include "tools/rdmaquotad/dynamic/device_capacity.hpp"

namespace rdmaquota {

class CapacityFile {
public:
    explicit CapacityFile(const std::string& directory) : path_(capacity_path(directory)) {}

    // Does nothing where there is no such file, or one that cannot be used.
    void load(DeviceCapacity& capacity);
    // Replaces the file if something changed since the last call.
    Result<void> save(const DeviceCapacity& capacity);

private:
    std::string path_;
    std::string saved_ = "[]";
};

}  // namespace rdmaquota
