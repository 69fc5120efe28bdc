// The copies of libibverbs in a process. A copy may have any name: it is known by the version node of its private
// interface, IBVERBS_PRIVATE_<PABI>, which it defines.
#pragma once

#include <string>
#include <vector>

namespace rdmaquota {

// The PABI of a file that is a libibverbs; empty for any other file.
std::string pabi_of_file(const std::string& path);

// The files of a text of /proc/PID/maps that are copies of libibverbs, in the order of their addresses. Reads files by the paths of
// this process's mount namespace. The text may be hostile: few files are read.
std::vector<std::string> verbs_copies(const std::string& maps);

// The first file in such a text that is one by its name; empty where there is none. Reads no file, so that a user cannot make the caller
// wait.
std::string named_verbs_copy(const std::string& maps);

}  // namespace rdmaquota
