// A Unix socket that waits for connections.
#pragma once

#include <functional>
#include <string>

#include "policy/result.hpp"
#include "tools/rdmaquotad/loop/loop.hpp"

namespace rdmaquota {

// Whoever can reach its directory may connect. Gone with this object, which removes what it made.
class ListeningSocket {
public:
    // Replaces whatever is at `path`, of any length. `ready` is called while there are connections to accept.
    ListeningSocket(Loop& loop, std::string path, std::function<void()> ready);
    ListeningSocket(const ListeningSocket&) = delete;
    ~ListeningSocket();

    // Empty when it listens.
    const std::string& error() const noexcept { return error_; }
    bool in_place() const;  // nobody has removed or replaced it

    int accept();  // a descriptor that is the caller's; -1 with errno
    void pause() { source_.set_events(0); }
    void resume();

private:
    bool listen();

    std::string path_;
    std::string error_;
    int fd_ = -1;
    unsigned long inode_ = 0;
    Loop::Source source_;
};

}  // namespace rdmaquota
