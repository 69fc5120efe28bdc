#include "tools/common/ended_children.hpp"

#include <csignal>
#include <vector>

#include <sys/wait.h>

namespace rdmaquota {
namespace {

std::vector<pid_t> unended;

}  // namespace

void end_child(pid_t child) noexcept {
    if (child < 1) return;
    ::kill(-child, SIGKILL);
    ::kill(child, SIGKILL);  // where it does not lead a group yet
    try {
        unended.push_back(child);
    } catch (...) {  // no memory: it stays a zombie
    }
    (void)unended_children();
}

std::size_t unended_children() noexcept {
    std::erase_if(unended, [](pid_t child) { return ::waitpid(child, nullptr, WNOHANG) != 0; });
    return unended.size();
}

}  // namespace rdmaquota
