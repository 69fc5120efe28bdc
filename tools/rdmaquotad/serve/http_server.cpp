#include "tools/rdmaquotad/serve/http_server.hpp"

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
// Begun in a second. One costs about a millisecond of this thread.
constexpr unsigned most_handshakes = 200, handshakes_of_user = 20;

HttpReply refusal(unsigned status, const char* text) {
    return {status, "text/plain; charset=utf-8", std::make_shared<const std::string>(text)};
}

// Takes the same time wherever the texts differ.
bool are_equal(const std::string& given, const std::string& wanted) {
    unsigned differences = given.size() == wanted.size() ? 0 : 1;
    for (std::size_t i = 0; i < wanted.size(); ++i)
        differences |= static_cast<unsigned char>(i < given.size() ? given[i] ^ wanted[i] : 1);
    return differences == 0;
}

std::string place(const Listener& listener) {
    const bool six = listener.address.find(':') != listener.address.npos;
    return fmt::format("{}{}{}:{}", six ? "[" : "", listener.address, six ? "]" : "", listener.port);
}

sockaddr_storage socket_address(const Listener& listener) {
    sockaddr_storage storage{};
    sockaddr_in four{};
    sockaddr_in6 six{};
    if (::inet_pton(AF_INET, listener.address.c_str(), &four.sin_addr) == 1) {
        four.sin_family = AF_INET;
        four.sin_port = htons(listener.port);
        std::memcpy(&storage, &four, sizeof four);
    } else if (::inet_pton(AF_INET6, listener.address.c_str(), &six.sin6_addr) == 1) {
        six.sin6_family = AF_INET6;
        six.sin6_port = htons(listener.port);
        std::memcpy(&storage, &six, sizeof six);
    }
    return storage;
}

void add_tls(const Tls& tls, std::vector<MHD_OptionItem>& options) {
    const auto add = [&](MHD_OPTION option, const char* text) { options.push_back({option, 0, const_cast<char*>(text)}); };
    add(MHD_OPTION_HTTPS_MEM_CERT, tls.certificate.c_str());
    add(MHD_OPTION_HTTPS_MEM_KEY, tls.key.c_str());
    add(MHD_OPTION_HTTPS_PRIORITIES, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2");
    if (!tls.client_ca.empty()) add(MHD_OPTION_HTTPS_MEM_TRUST, tls.client_ca.c_str());
}

// A connection by the loopback address belongs to the user of its program. One machine may have all addresses of an IPv6 network of
// 64 bits, so these count as one.
ConnectionPlaces::User user_at(const sockaddr* peer, socklen_t length, std::uint16_t port) {
    char text[INET6_ADDRSTRLEN] = "";
    sockaddr_in four{};
    sockaddr_in6 six{};
    if (peer->sa_family == AF_INET && length >= sizeof four) {
        std::memcpy(&four, peer, sizeof four);
        const auto address = ntohl(four.sin_addr.s_addr);
        if (address >> 24 == IN_LOOPBACKNET) return {loopback_peer(address, ntohs(four.sin_port), port), {}};
        return {{}, ::inet_ntop(AF_INET, &four.sin_addr, text, sizeof text)};
    }
    if (peer->sa_family != AF_INET6 || length < sizeof six) return {};
    std::memcpy(&six, peer, sizeof six);
    if (IN6_IS_ADDR_V4MAPPED(&six.sin6_addr)) {
        four.sin_family = AF_INET;
        four.sin_port = six.sin6_port;
        std::memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, 4);
        return user_at(reinterpret_cast<const sockaddr*>(&four), sizeof four, port);
    }
    std::memset(six.sin6_addr.s6_addr + 8, 0, 8);
    return {{}, ::inet_ntop(AF_INET6, &six.sin6_addr, text, sizeof text)};
}

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
    return send(connection, static_cast<HttpServer*>(data)->handle(connection, request));
}

// MHD_AcceptPolicyCallback.
MHD_Result accept(void* data, const sockaddr* peer, socklen_t length) {
    return peer != nullptr && static_cast<HttpServer*>(data)->accepts(peer, length) ? MHD_YES : MHD_NO;
}

// MHD_NotifyConnectionCallback.
void notify(void* data, MHD_Connection* connection, void**, MHD_ConnectionNotificationCode what) {
    const auto* about = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (about == nullptr) return;
    auto& server = *static_cast<HttpServer*>(data);
    if (what == MHD_CONNECTION_NOTIFY_STARTED) server.began(about->connect_fd);
    if (what == MHD_CONNECTION_NOTIFY_CLOSED) server.ended(about->connect_fd);
}

}  // namespace

Result<void> HttpServer::listen(Listener listener) {
    if (!has_to_listen(listener)) return {};
    stop();
    timer_ = {};
    listener_ = std::move(listener);
    inherited_ = take_kept_socket(what_, listener_->kept ? port() : std::uint16_t{0});
    kept_ = inherited_ >= 0;
    if (port() == 0) return {};
    timer_ = loop_.every(1s, [this] { tick(); }, Urgency::last);
    return start();
}

// By errno.
Error HttpServer::failed() {
    const Error error{fmt::format("no {} for now: cannot listen at {}: {}", what_, place(*listener_),
                                  errno == 0 ? "libmicrohttpd does not start" : std::strerror(errno))};
    stop();
    kept_ = false;
    return error;
}

Result<void> HttpServer::start() {
    tried_at_ = Clock::now();
    auto address = socket_address(*listener_);
    errno = 0;
    const int fd = !listener_->kept ? -1 : inherited_ >= 0 ? std::exchange(inherited_, -1) : make_kept_socket(what_, port());
    if (listener_->kept && fd < 0) return failed();
    std::vector<MHD_OptionItem> options{
        fd < 0 ? MHD_OptionItem{MHD_OPTION_SOCK_ADDR, 0, &address} : MHD_OptionItem{MHD_OPTION_LISTEN_SOCKET, fd, nullptr},
        {MHD_OPTION_CONNECTION_LIMIT, static_cast<std::intptr_t>(ConnectionPlaces::most_connections), nullptr},
        {MHD_OPTION_NOTIFY_CONNECTION, reinterpret_cast<std::intptr_t>(&notify), this}};
    unsigned flags = MHD_USE_EPOLL | (address.ss_family == AF_INET6 ? unsigned{MHD_USE_DUAL_STACK} : 0);
    if (!listener_->tls.certificate.empty()) {
        flags |= MHD_USE_TLS;
        add_tls(listener_->tls, options);
    }
    options.push_back({MHD_OPTION_END, 0, nullptr});
    server_ = MHD_start_daemon(flags, port(), accept, this, answer, this, MHD_OPTION_ARRAY, options.data(), MHD_OPTION_END);
    if (server_ == nullptr && fd >= 0) ::close(fd);
    const auto* about = server_ == nullptr ? nullptr : MHD_get_daemon_info(server_, MHD_DAEMON_INFO_EPOLL_FD);
    if (about == nullptr) return failed();
    ready_ = loop_.watch(about->epoll_fd, EPOLLIN, [this](std::uint32_t) { serve(); }, Urgency::last);
    return {};
}

// TLS may hold decrypted bytes that libmicrohttpd has not read yet; the descriptor does not announce them.
void HttpServer::serve() {
    MHD_UNSIGNED_LONG_LONG wait = 0;
    for (std::size_t turns = 0; turns < ConnectionPlaces::all; ++turns) {
        MHD_run(server_);
        if (MHD_get_timeout(server_, &wait) != MHD_YES || wait != 0) return;
    }
}

HttpReply HttpServer::handle(MHD_Connection* connection, const HttpRequest& request) {
    if (!listener_->tls.client_ca.empty() && !has_valid_certificate(connection))
        return refusal(403, "a certificate of a client that metrics_client_ca vouches for is needed\n");
    if (!listener_->token.empty() && !are_equal(request.header(MHD_HTTP_HEADER_AUTHORIZATION), "Bearer " + listener_->token)) {
        auto reply = refusal(401, "the header 'Authorization: Bearer TOKEN' is needed\n");
        reply.headers.emplace_back(MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer");
        return reply;
    }
    return handler_(request);
}

bool HttpServer::accepts(const sockaddr* peer, socklen_t length) {
    accepted_ = user_at(peer, length, port());
    return places_.may_begin(accepted_) && (listener_->tls.certificate.empty() || may_shake_hands());
}

bool HttpServer::may_shake_hands() {
    if (handshakes_in_all_ == most_handshakes || handshakes_[accepted_] == handshakes_of_user) return false;
    ++handshakes_in_all_;
    ++handshakes_[accepted_];
    return true;
}

// What is shut down here, libmicrohttpd closes at its next turn.
void HttpServer::began(int fd) {
    if (const auto dropped = places_.begin(fd, accepted_, Clock::now())) ::shutdown(*dropped, SHUT_RDWR);
}

void HttpServer::tick() {
    handshakes_.clear();
    handshakes_in_all_ = 0;
    if (server_ != nullptr) {
        end_old();
        serve();
    } else if (Clock::now() - tried_at_ >= next_try && start()) {
        log(Priority::notice, fmt::format("{}: served at {} now", what_, place(*listener_)));
    }
}

// By age, not by idle time: a connection that sends a byte now and then would keep its place for ever.
void HttpServer::end_old() {
    const auto allowed = places_.connections().size() < ConnectionPlaces::all / 2 ? patience : short_patience;
    for (const auto& [fd, connection] : places_.connections())
        if (Clock::now() - connection.began > allowed) ::shutdown(fd, SHUT_RDWR);
}

void HttpServer::stop() {
    ready_ = {};
    if (server_ != nullptr) MHD_stop_daemon(server_);
    server_ = nullptr;
}

}  // namespace rdmaquota
