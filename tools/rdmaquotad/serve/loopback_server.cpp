#include "tools/rdmaquotad/serve/loopback_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <microhttpd.h>

#include "tools/rdmaquotad/loop/log.hpp"
#include "tools/rdmaquotad/serve/kept_socket.hpp"

namespace rdmaquota {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 5s;        // for a whole connection, which has one request
constexpr auto short_patience = 1s;  // when half of the places are taken
constexpr auto next_try = 10s;

MHD_Result send(MHD_Connection* connection, const HttpReply& reply) {
    auto* response = MHD_create_response_from_buffer(reply.body->size(), const_cast<char*>(reply.body->data()),
                                                     MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, reply.type.c_str());
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    for (const auto& [name, value] : reply.headers) MHD_add_response_header(response, name.c_str(), value.c_str());
    const auto queued = MHD_queue_response(connection, reply.status, response);
    MHD_destroy_response(response);
    return queued;
}

// MHD_KeyValueIterator: the one value of a name.
struct Value {
    std::string_view name;
    std::string text;
    unsigned count = 0;
};
MHD_Result note(void* data, MHD_ValueKind, const char* name, const char* text) {
    auto& value = *static_cast<Value*>(data);
    if (::strcasecmp(name, value.name.data()) != 0) return MHD_YES;
    value.text = ++value.count == 1 && text != nullptr ? text : "";
    return MHD_YES;
}

std::function<std::string(const char*)> values_of(MHD_Connection* connection, MHD_ValueKind kind) {
    return [connection, kind](const char* name) {
        Value value{name, {}};
        MHD_get_connection_values(connection, kind, note, &value);
        return value.text;
    };
}

// MHD_AccessHandlerCallback (microhttpd.h).
MHD_Result answer(void* data, MHD_Connection* connection, const char* url, const char* method, const char*, const char*,
                  std::size_t* upload, void**) {
    const std::string_view asked = method;
    if (*upload != 0) return MHD_NO;
    if (asked != MHD_HTTP_METHOD_GET && asked != MHD_HTTP_METHOD_HEAD)
        return send(connection, {MHD_HTTP_METHOD_NOT_ALLOWED, "text/plain", std::make_shared<const std::string>("GET only\n")});
    const HttpRequest request{url, values_of(connection, MHD_HEADER_KIND), values_of(connection, MHD_GET_ARGUMENT_KIND)};
    return send(connection, static_cast<LoopbackServer*>(data)->handle(request));
}

// MHD_AcceptPolicyCallback.
MHD_Result accept(void* data, const sockaddr* address, socklen_t length) {
    if (address == nullptr || length < sizeof(sockaddr_in) || address->sa_family != AF_INET) return MHD_NO;
    sockaddr_in peer{};
    std::memcpy(&peer, address, sizeof peer);
    return static_cast<LoopbackServer*>(data)->accepts(ntohl(peer.sin_addr.s_addr), ntohs(peer.sin_port)) ? MHD_YES : MHD_NO;
}

// MHD_NotifyConnectionCallback.
void notify(void* data, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
    const auto* about = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (about == nullptr) return;
    auto& server = *static_cast<LoopbackServer*>(data);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) server.began(about->connect_fd);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) server.ended(about->connect_fd);
}

}  // namespace

Result<void> LoopbackServer::listen(std::uint16_t port) {
    if (!has_to_listen(port)) return {};
    stop();
    timer_ = {};
    port_ = port;
    inherited_ = take_kept_socket(what_, port);
    kept_ = inherited_ >= 0;
    if (port == 0) return {};
    timer_ = loop_.every(1s, [this] { tick(); }, Urgency::last);
    return start();
}

Result<void> LoopbackServer::start() {
    tried_at_ = Clock::now();
    errno = 0;
    const int fd = inherited_ >= 0 ? std::exchange(inherited_, -1) : make_kept_socket(what_, port());
    if (fd >= 0)
        server_ = MHD_start_daemon(MHD_USE_EPOLL, port(), accept, this, answer, this, MHD_OPTION_LISTEN_SOCKET, fd,
                                   MHD_OPTION_CONNECTION_LIMIT, static_cast<unsigned>(LoopbackPlaces::most_connections),
                                   MHD_OPTION_NOTIFY_CONNECTION, notify, this, MHD_OPTION_END);
    if (server_ == nullptr && fd >= 0) ::close(fd);
    const auto* about = server_ == nullptr ? nullptr : MHD_get_daemon_info(server_, MHD_DAEMON_INFO_EPOLL_FD);
    if (about == nullptr) {
        const Error error{fmt::format("no {} for now: cannot listen at 127.0.0.1:{}: {}", what_, port(),
                                      std::strerror(errno))};
        stop();
        kept_ = false;
        return error;
    }
    ready_ = loop_.watch(about->epoll_fd, EPOLLIN, [this](std::uint32_t) { serve(); }, Urgency::last);
    return {};
}

void LoopbackServer::serve() { MHD_run(server_); }

bool LoopbackServer::accepts(std::uint32_t address, std::uint16_t peer_port) {
    accepted_ = loopback_peer(address, peer_port, port());
    return places_.may_begin(accepted_);
}

// What is shut down here, libmicrohttpd closes at its next turn.
void LoopbackServer::began(int fd) {
    if (const auto dropped = places_.begin(fd, accepted_, Clock::now())) ::shutdown(*dropped, SHUT_RDWR);
}

void LoopbackServer::tick() {
    if (server_ != nullptr) {
        end_old();
        serve();
    } else if (Clock::now() - tried_at_ >= next_try && start()) {
        log(Priority::notice, fmt::format("{}: served at 127.0.0.1:{} now", what_, port()));
    }
}

// By age, not by idle time: a connection that sends a byte now and then would keep its place for ever.
void LoopbackServer::end_old() {
    const auto allowed = places_.connections().size() < LoopbackPlaces::all / 2 ? patience : short_patience;
    for (const auto& [fd, connection] : places_.connections())
        if (Clock::now() - connection.began > allowed) ::shutdown(fd, SHUT_RDWR);
}

void LoopbackServer::stop() {
    ready_ = {};
    if (server_ != nullptr) MHD_stop_daemon(server_);
    server_ = nullptr;
}

}  // namespace rdmaquota
