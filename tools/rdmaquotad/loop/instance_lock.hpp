// One rdmaquotad per quota directory.
#pragma once

#include <string>

#include "policy/result.hpp"

namespace rdmaquota {

// Locks DIR/rdmaquotad.lock (an OFD lock, fcntl(2)) until this process ends; the kernel drops the lock however that
// happens. Replaces a file that other users can open or have locked. When another rdmaquotad runs, the error names its
// process.
Result<void> lock_instance(const std::string& directory);

}  // namespace rdmaquota
