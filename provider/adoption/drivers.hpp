// Which provider libraries libibverbs will load, by the same rules (libibverbs/dynamic_driver.c):
// RDMAV_DRIVERS, else IBV_DRIVERS (both ignored under setuid), then the `driver NAME` lines of
// /etc/libibverbs.d.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota::provider {

// Names without duplicates and without this provider's own.
std::vector<std::string> driver_names();

struct Driver {
    void* handle = nullptr;
    bool fresh = false;  // it was not loaded before
};

// dlopens the provider as libibverbs would. A null handle when there is none: libibverbs will report that.
Driver load_driver(const std::string& name, unsigned pabi);

}  // namespace rdmaquota::provider
