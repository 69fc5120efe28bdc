// The RDMA devices of this machine.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota {

// The names in /sys/class/infiniband, sorted; none without RDMA.
std::vector<std::string> machine_devices();

}  // namespace rdmaquota
