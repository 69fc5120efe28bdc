// Whole small files, those of /proc and of cgroups too.
#pragma once

#include <string>
#include <string_view>

#include <sys/types.h>

#include "policy/result.hpp"

namespace rdmaquota {

// The contents of a file; empty when there is none, when it may not be read, and when it vanishes meanwhile, as
// /proc/PID does with its process. Throws only std::bad_alloc.
std::string file_text(const std::string& path);

// Its first line, without the end of the line; empty likewise. Of the one value in a file of sysfs.
std::string first_line(const std::string& path);

// Replaces a file in one step, by one with these rights.
Result<void> replace_file(const std::string& path, std::string_view text, mode_t rights = 0644);

Error cannot_write(const std::string& path);  // by errno

}  // namespace rdmaquota
