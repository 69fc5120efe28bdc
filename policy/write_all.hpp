// Writing a text whole.
#pragma once

#include <cerrno>
#include <cstddef>
#include <string_view>

#include <unistd.h>

namespace rdmaquota {

// Goes on after short writes and signals. False with an errno that says why: a short write alone sets none, so that an errno of
// something else would be reported.
inline bool write_all(int fd, std::string_view text) noexcept {
    while (!text.empty()) {
        const auto written = ::write(fd, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written == 0) errno = ENOSPC;
        if (written <= 0) return false;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
}

}  // namespace rdmaquota
