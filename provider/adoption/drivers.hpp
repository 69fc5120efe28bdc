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

// Where the process's libibverbs lies, as the loader found it. Empty when it is not loaded.
std::string libibverbs_directory();

// Where libibverbs may have its providers, which its build fixed: beside libibverbs itself (`library`), since a container's
// image has another one than the node that this was built for; then where this was built for.
std::vector<std::string> provider_directories(const std::string& library);

// dlopens the provider as libibverbs would. A null handle when there is none: libibverbs will report that.
Driver load_driver(const std::string& name, unsigned pabi, const std::vector<std::string>& directories);

}  // namespace rdmaquota::provider
