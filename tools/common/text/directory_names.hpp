// The names in a directory, without exceptions: a range-for over std::filesystem::directory_iterator throws when a later read
// of the directory fails, also where its constructor was given a std::error_code.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota {

// The names of all entries except "." and "..", in the directory's order. A directory that does not exist or cannot be read has
// none; one of which a later read fails has those that were read before. Throws only std::bad_alloc.
std::vector<std::string> directory_names(const std::string& path);
// Sets `error` to 0, or to the errno of the read that failed.
std::vector<std::string> directory_names(const std::string& path, int& error);

}  // namespace rdmaquota
