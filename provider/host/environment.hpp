// What the environment of this process says, read once. A setuid program ignores it (secure_getenv(3)).
#pragma once

#include <string>
#include <vector>

#include "policy/environment.hpp"

namespace rdmaquota::provider {

const Tightening& environment();

struct QuotaDirectory {
    std::string path;
    const char* second = nullptr;  // where the same directory is mounted again; null: nowhere
};

// The quota directories of this process, the node's first: the node's, and RDMAQUOTA_DIR where that is another one.
// A relative RDMAQUOTA_DIR is relative to the directory that the process had at the first call.
std::vector<QuotaDirectory> quota_directories();

}  // namespace rdmaquota::provider
