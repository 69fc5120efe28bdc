#include "tools/rdmaquota/view/screen.hpp"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string_view>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

sigset_t watched() {
    sigset_t signals;
    sigemptyset(&signals);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH}) sigaddset(&signals, number);
    return signals;
}

}  // namespace

Screen::Screen() {
    ::tcgetattr(STDIN_FILENO, &before_);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);  // stops a process in the background of its terminal, which signals can end yet
    const auto signals = watched();
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    signals_ = ::signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
    enter();
}

Screen::~Screen() {
    leave();
    if (signals_ >= 0) ::close(signals_);
    const auto signals = watched();
    ::sigprocmask(SIG_UNBLOCK, &signals, nullptr);
}

void Screen::enter() {
    auto raw = before_;
    raw.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &raw);
    fmt::print("\x1b[?1049h\x1b[?25l");  // alternate screen, no cursor
    std::fflush(stdout);
    measure();
}

void Screen::leave() const {
    fmt::print("\x1b[?25h\x1b[?1049l");
    std::fflush(stdout);
    const auto stops = ::signal(SIGTTOU, SIG_IGN);  // else a process that is in the background by now never ends
    ::tcsetattr(STDIN_FILENO, TCSADRAIN, &before_);
    ::signal(SIGTTOU, stops);
}

void Screen::measure() {
    winsize size{};
    if (::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0) return;
    width_ = size.ws_col;
    height_ = size.ws_row;
}

void Screen::draw(const std::vector<std::string>& lines) const {
    std::string text = "\x1b[H";
    for (std::size_t i = 0; i < lines.size() && i < height_; ++i)
        text += lines[i] + (i + 1 == height_ ? "\x1b[K" : "\x1b[K\r\n");
    if (lines.size() < height_) text += "\x1b[J";
    fmt::print("{}", text);
    std::fflush(stdout);
}

Key Screen::caught() {
    signalfd_siginfo about{};
    if (::read(signals_, &about, sizeof about) != sizeof about) return Key::none;
    if (about.ssi_signo != SIGWINCH && about.ssi_signo != SIGTSTP) return Key::quit;
    if (about.ssi_signo == SIGTSTP) {
        leave();
        ::raise(SIGSTOP);
        enter();
    }
    measure();
    return Key::resized;
}

Key Screen::decode(std::string_view text, std::string& typed) {
    if (text == "\x1b[A" || text == "\x1bOA") return Key::up;
    if (text == "\x1b[B" || text == "\x1bOB") return Key::down;
    if (text == "\x1b[C" || text == "\x1bOC") return Key::right;
    if (text == "\x1b[D" || text == "\x1bOD") return Key::left;
    typed = text;
    return Key::other;
}

Key Screen::wait(int milliseconds, std::string& typed) {
    pollfd ready[2] = {{STDIN_FILENO, POLLIN, 0}, {signals_, POLLIN, 0}};
    if (::poll(ready, 2, milliseconds) <= 0) return Key::none;
    if (ready[1].revents != 0) return caught();
    char bytes[16];
    const auto got = ::read(STDIN_FILENO, bytes, sizeof bytes);
    return got <= 0 ? Key::quit : decode({bytes, static_cast<std::size_t>(got)}, typed);
}

}  // namespace rdmaquota
