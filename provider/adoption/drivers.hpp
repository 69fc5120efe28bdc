// Which provider libraries a libibverbs will load, by the same rules (libibverbs/dynamic_driver.c): RDMAV_DRIVERS, else IBV_DRIVERS
// (both ignored under setuid), then the `driver NAME` lines of the files in its configuration directory, /etc/libibverbs.d as a rule.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota::provider {

// Names without duplicates and without this provider's own.
std::vector<std::string> driver_names(const std::string& configuration);

struct Driver {
    void* handle = nullptr;
    bool fresh = false;  // it was not loaded before
};

// dlopens the provider as a libibverbs of this PABI would that has its providers in `directory`. A null handle when there is none:
// libibverbs will report that.
Driver load_driver(const std::string& name, unsigned pabi, const std::string& directory);

}  // namespace rdmaquota::provider
