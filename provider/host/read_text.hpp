// Small files of /proc and /sys.
#pragma once

#include <optional>
#include <string>

namespace rdmaquota::provider {

// At most about 64 KiB, on the heap, since the host program's stack may be small. None where the file cannot be opened. Changes errno.
std::optional<std::string> read_text(const std::string& path);

}  // namespace rdmaquota::provider
