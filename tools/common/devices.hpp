// The RDMA devices of this machine.
//
// An RDMA device can be renamed at any time, also while programs use it (udev's rdma_rename, `rdma dev set`). What does not
// change while it exists is its uverbs device, /dev/infiniband/uverbs3. So "uverbs3" is its identity in ledgers and in the guard,
// and names are looked up when they are shown or compared with the policy.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/uverbs.hpp"
#include "shm/ledger/ledger.hpp"

namespace rdmaquota {

class UverbsDevices {
public:
    // From a directory like /sys/class/infiniband_verbs.
    static UverbsDevices read(const std::string& directory);
    // Those of this machine, read at most ten times a second.
    static const UverbsDevices& now();

    // The name at present of a device or port. Of two devices with one name, in two network namespaces, the second one's is
    // "mlx5_0@uverbs3". For a device that is gone: `last_name`, or the identity where that is empty; "mlx5_0@uverbs3" where another
    // device has that name now.
    std::string name(std::string_view identity, std::string_view last_name = {}) const;
    std::vector<std::string> identities() const;  // sorted
    std::vector<std::string> names() const;
    bool operator==(const UverbsDevices&) const = default;

private:
    std::map<std::string, std::string, std::less<>> names_;  // by identity
};

// The names of all devices, sorted; none without RDMA.
std::vector<std::string> machine_devices();

// Without the second one of two that have one name: their limits are in one place, and divided by what the first one uses.
std::vector<std::string> policy_devices();

// The providers with a public library: libefa, libhns, ...
inline constexpr std::array<std::string_view, 5> public_providers{"efa", "hns", "mana", "mlx4", "mlx5"};

// Whether the providers of all devices, and there is one, have public libraries, such as libmlx5, that register them where a program
// loads them: the program's libibverbs reads neither RDMAV_DRIVERS nor a configuration then.
bool all_have_public_libraries();

// Whether it is one of `devices`, sorted, or a port of one, or "total". Members may write any name of a device into their ledger.
// Without any RDMA device, all that are named count.
bool is_device_of(const std::vector<std::string>& devices, const std::string& name);

// Index and present name of each device of a Ledger or LedgerCopy.
using DeviceNames = std::vector<std::pair<std::uint32_t, std::string>>;
template <class Source>
DeviceNames devices_of(const Source& ledger) {
    DeviceNames devices;
    for (const auto& device : ledger.devices())
        devices.emplace_back(device.index, UverbsDevices::now().name(device.identity, device.name));
    return devices;
}

}  // namespace rdmaquota
