// Answers GET and HEAD on a port, for the clients that the listener admits. By libmicrohttpd, which our own loop can drive through
// an epoll descriptor; cpp-httplib would bring threads. Each connection has one request and little time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <sys/socket.h>

#include "policy/result.hpp"
#include "tools/rdmaquotad/loop/loop.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"
#include "tools/rdmaquotad/serve/connection_places.hpp"
#include "tools/rdmaquotad/serve/tls.hpp"

struct MHD_Connection;
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

// Where a server listens, and which clients it admits. It refuses the others itself; the handler does not see them.
struct Listener {
    std::string address = "127.0.0.1";
    std::uint16_t port = 0;  // 0: nowhere
    Tls tls = {};
    std::string token = {};  // not empty: a request needs the header "Authorization: Bearer TOKEN"
    bool kept = false;       // at 127.0.0.1 only: systemd keeps the socket while the sidecar restarts (kept_socket.hpp)

    bool operator==(const Listener&) const = default;
};

class HttpServer {
public:
    using Handler = std::function<HttpReply(const HttpRequest&)>;

    // `what` is served, for messages and as the name of the socket that systemd keeps. `handler` is called in the loop's thread.
    HttpServer(Loop& loop, std::string what, Handler handler)
        : loop_(loop), what_(std::move(what)), handler_(std::move(handler)) {}
    HttpServer(const HttpServer&) = delete;
    ~HttpServer() { stop(); }

    bool has_to_listen(const Listener& listener) const noexcept { return listener_ != listener; }
    // Does nothing when it listens so already. After an error it tries again every ten seconds.
    Result<void> listen(Listener listener);
    bool listening() const noexcept { return server_ != nullptr; }
    std::uint16_t port() const noexcept { return listener_ ? listener_->port : std::uint16_t{0}; }
    // Whether nobody else could listen at the port since the sidecar before this one.
    bool kept() const noexcept { return kept_; }

    // For the callbacks of libmicrohttpd.
    HttpReply handle(MHD_Connection* connection, const HttpRequest& request);
    // Whether a connection from there is taken; began() follows.
    bool accepts(const sockaddr* peer, socklen_t length);
    void began(int fd);
    void ended(int fd) { places_.end(fd); }

private:
    using Clock = ConnectionPlaces::Clock;

    Result<void> start();
    Error failed();
    void stop();
    void serve();
    void tick();
    bool may_shake_hands();
    void end_old();

    Loop& loop_;
    std::string what_;
    Handler handler_;
    MHD_Daemon* server_ = nullptr;
    std::optional<Listener> listener_;  // as asked for
    int inherited_ = -1;  // a socket that listens there, until it is used
    bool kept_ = false;
    ConnectionPlaces places_;
    ConnectionPlaces::User accepted_;  // whose the connection is that begins now
    Clock::time_point tried_at_;
    std::map<ConnectionPlaces::User, unsigned> handshakes_;  // since the last tick
    unsigned handshakes_in_all_ = 0;
    Loop::Source ready_;
    Loop::Source timer_;
};

}  // namespace rdmaquota
