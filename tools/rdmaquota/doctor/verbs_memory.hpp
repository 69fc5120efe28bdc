// libibverbs' objects in another process: the device table of a provider, and the contexts that are open.
//
// A provider's table is `struct verbs_device_ops`, whose layout is the same in every release (see
// provider/adoption/device_table.hpp); device and context begin as in infiniband/verbs.h. All are found by their
// contents. A hostile process can fake or hide them; what is read of its memory is bounded.
#pragma once

#include <string>
#include <vector>

#include "tools/rdmaquota/doctor/process_memory.hpp"

namespace rdmaquota {

enum class Adoption {
    not_loaded,
    no_table,    // loaded, but nothing in it looks like a device table, or several things do
    left_alone,  // its devices are opened by its own functions
    adopted,     // by ours
};

// Whether the provider library `file` (a path without symbolic links) is loaded and adopted there.
Adoption adoption_of(const ProcessMemory& memory, const std::string& file);

// A context that the process opened on a device.
struct OpenContext {
    int descriptor;
    std::string provider;  // the file that holds the device's table
    bool table_adopted;    // the device is opened by us
    bool ours;             // this context's own operations lead to us
};

// The contexts on the device `name` (mlx5_0), whose node is `node` (uverbs0).
std::vector<OpenContext> open_contexts(const ProcessMemory& memory, const std::string& name, const std::string& node);

}  // namespace rdmaquota
