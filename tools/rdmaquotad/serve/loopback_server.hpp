// Answers GET and HEAD on a port of the loopback address. By libmicrohttpd, which our own loop can drive through an epoll
// descriptor; cpp-httplib would bring threads. Each connection has one request and little time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/result.hpp"
#include "tools/rdmaquotad/loop/loop.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"
#include "tools/rdmaquotad/serve/loopback_places.hpp"

struct MHD_Daemon;

namespace rdmaquota {

struct HttpRequest {
    std::string path;
    std::function<std::string(const char* name)> header;    // empty: there is none, or more than one
    std::function<std::string(const char* name)> argument;  // of the query; the same
};

struct HttpReply {
    unsigned status = 200;
    std::string type;  // Content-Type
    Text body;
    std::vector<std::pair<std::string, std::string>> headers = {};
};

class LoopbackServer {
public:
    using Handler = std::function<HttpReply(const HttpRequest&)>;

    // `what` is served, for messages and as the name of the socket that systemd keeps. `handler` is called in the loop's thread.
    LoopbackServer(Loop& loop, std::string what, Handler handler)
        : loop_(loop), what_(std::move(what)), handler_(std::move(handler)) {}
    LoopbackServer(const LoopbackServer&) = delete;
    ~LoopbackServer() { stop(); }

    // Listens at 127.0.0.1:`port` only; 0: nowhere. Does nothing when it listens there already. After an error it
    // tries again every ten seconds.
    Result<void> listen(std::uint16_t port);
    bool listening() const noexcept { return server_ != nullptr; }
    std::uint16_t port() const noexcept { return port_.value_or(0); }
    bool has_to_listen(std::uint16_t port) const noexcept { return port_ != port; }
    // Whether nobody else could listen at the port since the sidecar before this one.
    bool kept() const noexcept { return kept_; }

    // For the callbacks of libmicrohttpd.
    HttpReply handle(const HttpRequest& request) { return handler_(request); }
    // Whether a connection from there is taken; began() follows.
    bool accepts(std::uint32_t address, std::uint16_t peer_port);
    void began(int fd);
    void ended(int fd) { places_.end(fd); }

private:
    using Clock = LoopbackPlaces::Clock;

    Result<void> start();
    void stop();
    void serve();
    void tick();
    void end_old();

    Loop& loop_;
    std::string what_;
    Handler handler_;
    MHD_Daemon* server_ = nullptr;
    std::optional<std::uint16_t> port_;  // as asked for
    int inherited_ = -1;  // a socket that listens there, until it is used
    bool kept_ = false;
    LoopbackPlaces places_;
    LoopbackPlaces::User accepted_;  // whose the connection is that begins now
    Clock::time_point tried_at_;
    Loop::Source ready_;
    Loop::Source timer_;
};

}  // namespace rdmaquota
