#include "tools/rdmaquotad/loop/question.hpp"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include "policy/write_all.hpp"
#include "tools/common/process/children.hpp"

namespace rdmaquota {
namespace {

[[noreturn]] void child(const std::function<std::string()>& work, int answer) {
    const int nowhere = ::open("/dev/null", O_WRONLY | O_CLOEXEC);
    ::dup2(nowhere, STDOUT_FILENO);
    ::dup2(nowhere, STDERR_FILENO);
    const auto text = work();
    const bool written = write_all(answer, text);
    ::_exit(written ? 0 : 1);
}

}  // namespace

Question::Question(const std::function<std::string()>& work) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0) return;
    pid_ = start_child([&] { child(work, ends[1]); });
    ::close(ends[1]);
    if (pid_ > 0) from_ = ends[0];
    else ::close(ends[0]);
}

Question::~Question() {
    if (from_ >= 0) ::close(from_);
    end_child(pid_);
}

std::optional<std::string> Question::answer(std::chrono::milliseconds wait) {
    const auto end = std::chrono::steady_clock::now() + wait;
    while (from_ >= 0) {
        const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - std::chrono::steady_clock::now());
        pollfd readable{from_, POLLIN, 0};
        const int ready = ::poll(&readable, 1, std::max(0, static_cast<int>(left.count())));
        if (ready < 0 && errno == EINTR) continue;
        if (ready == 0) return std::nullopt;
        char buffer[4096];
        const auto got = ::read(from_, buffer, sizeof buffer);
        if (got > 0) text_.append(buffer, static_cast<std::size_t>(got));
        else ::close(std::exchange(from_, -1));
    }
    return text_;
}

}  // namespace rdmaquota
