// The version of all shared segments' layouts together. It is part of their paths, so that programs of two versions on
// one node never read each other's: a change of any layout raises it.
#pragma once

#include <cstdint>

namespace rdmaquota {

inline constexpr std::uint32_t layout_version = 5;

}  // namespace rdmaquota
