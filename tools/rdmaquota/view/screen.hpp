// Takes over the terminal for a live view: no echo, keys without Enter, the alternate screen. Restores it at the end,
// and while the program is stopped.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <termios.h>

namespace rdmaquota {

enum class Key { none, other, quit, up, down, left, right, resized };

class Screen {
public:
    Screen();
    Screen(const Screen&) = delete;
    ~Screen();

    std::size_t width() const noexcept { return width_; }
    std::size_t height() const noexcept { return height_; }

    // Draws the lines from the top and clears the rest, without flicker.
    void draw(const std::vector<std::string>& lines) const;

    // Waits for a key for at most `milliseconds`; with Key::other `typed` is what was typed, of several keys where they came at
    // once. Ctrl-C, a hang-up and SIGTERM are Key::quit; Ctrl-Z stops the program and is Key::resized when it goes on.
    Key wait(int milliseconds, std::string& typed);

private:
    void enter();
    void leave() const;
    void measure();
    Key caught();
    static Key decode(std::string_view text, std::string& typed);

    termios before_{};
    int signals_ = -1;
    std::size_t width_ = 80;
    std::size_t height_ = 24;
};

}  // namespace rdmaquota
