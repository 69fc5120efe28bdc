// Which provider libraries a libibverbs will load, by the same rules (libibverbs/dynamic_driver.c): RDMAV_DRIVERS, else IBV_DRIVERS
// (both ignored under setuid), then the `driver NAME` lines of the files in its configuration directory, /etc/libibverbs.d as a rule.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota::provider {

// Names without duplicates and without this provider's own.
std::vector<std::string> driver_names(const std::string& configuration);

// Where a libibverbs of this PABI looks first for the provider, when it has its providers in `directory`.
std::string driver_path(const std::string& name, unsigned pabi, const std::string& directory);

// dlopens the provider as that libibverbs would. Null when there is none: libibverbs will report that.
void* load_driver(const std::string& name, unsigned pabi, const std::string& directory);

}  // namespace rdmaquota::provider
