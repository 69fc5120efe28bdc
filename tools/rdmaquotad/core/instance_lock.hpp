// One rdmaquotad per quota directory.
#pragma once

#include <string>

#include "policy/result.hpp"

namespace rdmaquota {

// Locks DIR/rdmaquotad.lock (an OFD lock, fcntl(2)) for as long as this process lives; the kernel
// drops it however the process ends. A file that other users can open, or hold a lock of, is replaced. The error
// names the process that has it.
Result<void> lock_instance(const std::string& directory);

}  // namespace rdmaquota
