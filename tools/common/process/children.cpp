#include "tools/common/process/children.hpp"

#include <csignal>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace rdmaquota {
namespace {

std::vector<pid_t> unended;

}  // namespace

// Both set the group, since either may run first; the parent may have ended before the child asks to be killed with it.
pid_t start_child(const std::function<void()>& work) {
    const auto parent = ::getpid();
    const auto child = ::fork();
    if (child > 0) ::setpgid(child, child);
    if (child != 0) return child;
    ::setpgid(0, 0);
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() == parent) work();
    ::_exit(1);
}

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
