// Suggests the word that a misspelt one was meant to be.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace rdmaquota {

// ", did you mean 'x'?" when a candidate is close to `word`, else "".
std::string did_you_mean(std::string_view word, std::span<const std::string_view> candidates);

}  // namespace rdmaquota
