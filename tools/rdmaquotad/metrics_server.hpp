// GET /metrics on the loopback address. libmicrohttpd, since it can be driven by a loop of one's own
// through an epoll descriptor; cpp-httplib brings threads.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "policy/result.hpp"
#include "tools/rdmaquotad/loop.hpp"

struct MHD_Daemon;

namespace rdmaquota {

class MetricsServer {
public:
    // `text` makes the answer, in the loop's thread.
    MetricsServer(Loop& loop, std::function<std::string()> text) : loop_(loop), text_(std::move(text)) {}
    MetricsServer(const MetricsServer&) = delete;
    ~MetricsServer() { stop(); }

    // Listens at 127.0.0.1:`port` and nowhere else; 0: not at all. Nothing happens when it does already.
    Result<void> listen(std::uint16_t port);
    const std::string text() const { return text_(); }

private:
    void stop();
    void serve();

    Loop& loop_;
    std::function<std::string()> text_;
    MHD_Daemon* server_ = nullptr;
    std::uint16_t port_ = 0;
    Loop::Source ready_;
    Loop::Source timer_;
};

}  // namespace rdmaquota
