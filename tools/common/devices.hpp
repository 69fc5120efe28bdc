// The RDMA devices of this machine.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota {

// The names in /sys/class/infiniband, sorted; none without RDMA.
std::vector<std::string> machine_devices();

// Whether it is one of `devices`, sorted, or a port of one, or "total". Members may write any name of a device into their ledger.
// Without any RDMA device, all that are named count.
bool is_device_of(const std::vector<std::string>& devices, const std::string& name);

}  // namespace rdmaquota
