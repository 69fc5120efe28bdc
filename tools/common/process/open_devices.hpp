// Which RDMA devices a process has open, by its descriptors.
#pragma once

#include <string>
#include <vector>

#include "policy/result.hpp"

namespace rdmaquota {

struct OpenDevice {
    int descriptor;
    std::string node;  // uverbs0
    std::string name;  // mlx5_0
};

// In the order of their descriptors. Goes by the device number, since the node may have another path in the process's mount
// namespace. An error where the descriptors may not be read, and where the process has ended.
Result<std::vector<OpenDevice>> open_devices(int pid);

}  // namespace rdmaquota
