#include "tools/rdmaquotad/kernel/kernel_preemption.hpp"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>

#include <sys/utsname.h>

#include "tools/common/text/file_text.hpp"

namespace rdmaquota {
namespace {

bool has_word(std::string_view text, std::string_view word) {
    std::istringstream words{std::string(text)};
    return std::find(std::istream_iterator<std::string>(words), {}, word) != std::istream_iterator<std::string>();
}

}  // namespace

bool preempts_threads(std::string_view modes, std::string_view version, std::string_view command_line) {
    if (has_word(version, "PREEMPT_RT")) return true;
    if (!modes.empty()) return !has_word(modes, "(none)") && !has_word(modes, "(voluntary)");
    if (!has_word(version, "PREEMPT_DYNAMIC")) return version.find("PREEMPT") != version.npos;
    return !has_word(command_line, "preempt=none") && !has_word(command_line, "preempt=voluntary");
}

bool preempts_threads() {
    utsname names{};
    if (uname(&names) != 0) return true;
    return preempts_threads(first_line("/sys/kernel/debug/sched/preempt"), names.version, first_line("/proc/cmdline"));
}

}  // namespace rdmaquota
