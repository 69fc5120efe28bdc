// Serves GET /metrics on the loopback address. By libmicrohttpd, which our own loop can drive through an epoll
// descriptor; cpp-httplib would bring threads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "policy/result.hpp"
#include "tools/rdmaquotad/core/loop.hpp"

struct MHD_Daemon;

namespace rdmaquota {

class MetricsServer {
public:
    // `text` makes the answer, in the loop's thread.
    MetricsServer(Loop& loop, std::function<std::string()> text) : loop_(loop), text_(std::move(text)) {}
    MetricsServer(const MetricsServer&) = delete;
    ~MetricsServer() { stop(); }

    // Listens at 127.0.0.1:`port` only; 0: nowhere. Does nothing when it listens there already. After an error it
    // tries again every ten seconds.
    Result<void> listen(std::uint16_t port);
    bool listening() const noexcept { return server_ != nullptr; }

    // The figures, not older than a second.
    const std::string& text();
    // Notes that a connection began or ended.
    void began(int fd) { connections_[fd] = Clock::now(); }
    void ended(int fd) { connections_.erase(fd); }

private:
    using Clock = std::chrono::steady_clock;

    Result<void> start();
    void stop();
    void serve();
    void tick();
    void end_old();

    Loop& loop_;
    std::function<std::string()> text_;
    MHD_Daemon* server_ = nullptr;
    std::uint16_t port_ = 0;  // as asked for
    std::map<int, Clock::time_point> connections_;  // when each began, by descriptor
    std::string made_;
    Clock::time_point made_at_;
    Clock::time_point tried_at_;
    Loop::Source ready_;
    Loop::Source timer_;
};

}  // namespace rdmaquota
