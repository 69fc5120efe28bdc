#include "tools/slurm/bounded.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t most_output = 64 * 1024;

std::vector<std::string> environment_with(const std::string& path) {
    std::vector<std::string> result{"PATH=" + path};
    for (char** entry = environ; *entry != nullptr; ++entry)
        if (std::strncmp(*entry, "PATH=", 5) != 0) result.emplace_back(*entry);
    return result;
}

std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> result;
    for (auto& text : texts) result.push_back(text.data());
    result.push_back(nullptr);
    return result;
}

// 0, or an errno number.
int spawn(pid_t& child, std::vector<std::string> arguments, const std::string& path, int output) {
    auto environment = environment_with(path);
    posix_spawn_file_actions_t actions;
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    ::posix_spawn_file_actions_adddup2(&actions, output, STDERR_FILENO);
    const int error = ::posix_spawn(&child, arguments[0].c_str(), &actions, nullptr, pointers(arguments).data(),
                                    pointers(environment).data());
    ::posix_spawn_file_actions_destroy(&actions);
    return error;
}

// False when it took too long.
bool read_all(int input, std::string& output, Clock::time_point end) {
    std::array<char, 4096> block{};
    for (;;) {
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()).count();
        pollfd wanted{input, POLLIN, 0};
        if (left <= 0) return false;
        if (::poll(&wanted, 1, static_cast<int>(left)) <= 0) continue;
        const auto count = ::read(input, block.data(), block.size());
        if (count < 0 && errno == EINTR) continue;
        if (count <= 0) return true;
        if (output.size() < most_output) output.append(block.data(), static_cast<std::size_t>(count));
    }
}

// What it had written to both streams is kept where it ended by itself.
void wait_for(pid_t child, const std::string& name, Ended& ended) {
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return;
    if (WIFEXITED(status)) ended.status = WEXITSTATUS(status);
    else if (WIFSIGNALED(status)) ended.output = fmt::format("{} was killed by signal {}", name, WTERMSIG(status));
}

}  // namespace

Ended run_bounded(const std::vector<std::string>& arguments, const std::string& path, int seconds) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return {-1, fmt::format("no pipe: {}", std::strerror(errno))};
    pid_t child = -1;
    const int error = spawn(child, arguments, path, ends[1]);
    ::close(ends[1]);
    Ended ended;
    if (error != 0) {
        ended.output = fmt::format("{} cannot be run: {}", arguments[0], std::strerror(error));
    } else {
        const bool in_time = read_all(ends[0], ended.output, Clock::now() + std::chrono::seconds(seconds));
        if (!in_time) ::kill(child, SIGKILL);
        wait_for(child, arguments[0], ended);
        if (!in_time) ended = {-1, fmt::format("{} took longer than {} s", arguments[0], seconds)};
    }
    ::close(ends[0]);
    return ended;
}

}  // namespace rdmaquota
