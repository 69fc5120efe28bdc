// Whole small files, those of /proc and of cgroups too.
#pragma once

#include <string>

namespace rdmaquota {

// What can be read of a file; empty when there is none, when it may not be read, and when it goes away meanwhile, as
// /proc/PID does with its process. Throws only std::bad_alloc.
std::string file_text(const std::string& path);

}  // namespace rdmaquota
