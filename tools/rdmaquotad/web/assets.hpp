// The files of the page, compiled in (embed.py), so that it is always the one of this version.
#pragma once

#include <string_view>

namespace rdmaquota {

struct Asset {
    std::string_view path;  // as in a request, "/app.js"
    const char* type;
    std::string_view text;
};

// Null: there is none.
const Asset* find_asset(std::string_view path) noexcept;

}  // namespace rdmaquota
