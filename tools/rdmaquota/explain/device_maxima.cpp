#include "tools/rdmaquota/explain/device_maxima.hpp"

#include "tools/common/device_query.hpp"
#include "tools/common/process/probe.hpp"

namespace rdmaquota {

std::uint64_t device_maximum(const std::string& device, Resource resource) {
    const Probe probe([&] { return query_device(device); });
    return parse_maxima(probe.answer())[index(resource)];
}

}  // namespace rdmaquota
