// The version of all that programs share: a ledger, a file of limits, the node's compiled policy. It goes up when any of
// them changes, and it stands in their paths (shm/paths.hpp): programs that still have an older provider go on with the
// files of theirs.
#pragma once

#include <cstdint>

namespace rdmaquota {

inline constexpr std::uint32_t layout_version = 4;

}  // namespace rdmaquota
