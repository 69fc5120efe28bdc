#include "tools/rdmaquotad/bypass/finding.hpp"

namespace rdmaquota {

std::string_view name(Finding::Kind kind) noexcept {
    using enum Finding::Kind;
    switch (kind) {
        case bypass: return "bypass";
        case bypass_ended: return "bypass_ended";
        case leak: return "leak";
        case leak_ended: return "leak_ended";
    }
    return "";
}

}  // namespace rdmaquota
