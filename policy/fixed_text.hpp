// Texts in arrays of a fixed size, which may be full and then have no NUL at their end.
#pragma once

#include <cstddef>
#include <cstring>
#include <string_view>

namespace rdmaquota {

// Valid as long as the array lives.
template <std::size_t size>
std::string_view fixed_text(const char (&bytes)[size]) noexcept {
    return {bytes, strnlen(bytes, size)};
}

}  // namespace rdmaquota
