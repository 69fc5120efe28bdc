#include "tools/rdmaquotad/bypass/bypass_report.hpp"

namespace rdmaquota {

SidecarKind kind_of(BypassReport::Kind kind) noexcept {
    using enum BypassReport::Kind;
    switch (kind) {
        case bypass: return "bypass";
        case bypass_ended: return "bypass_ended";
        case leak: return "leak";
        case leak_ended: return "leak_ended";
    }
    return "leak_ended";
}

}  // namespace rdmaquota
