#include "tools/rdmaquota/explain/device_maxima.hpp"

#include "tools/common/process/probe.hpp"

namespace rdmaquota {

DeviceMaxima device_maxima(const std::string& device) {
    const Probe probe([&] { return query_device(device); });
    return parse_maxima(probe.answer());
}

std::uint64_t device_maximum(const std::string& device, Resource resource) { return device_maxima(device)[index(resource)]; }

}  // namespace rdmaquota
