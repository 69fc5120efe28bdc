#include "tools/rdmaquotad/metrics_server.hpp"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include <fmt/core.h>
#include <microhttpd.h>

namespace rdmaquota {
namespace {

constexpr unsigned most_connections = 16;
constexpr unsigned patience_s = 5;

MHD_Result reply(MHD_Connection* connection, unsigned status, const std::string& text, const char* type) {
    auto* response =
        MHD_create_response_from_buffer(text.size(), const_cast<char*>(text.data()), MHD_RESPMEM_MUST_COPY);
    if (response == nullptr) return MHD_NO;
    MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
    const auto queued = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return queued;
}

// MHD_AccessHandlerCallback (microhttpd.h).
MHD_Result answer(void* data, MHD_Connection* connection, const char* url, const char* method, const char*, const char*,
                  std::size_t* upload, void**) {
    const std::string_view asked = method;
    if (*upload != 0) return MHD_NO;
    if (asked != MHD_HTTP_METHOD_GET && asked != MHD_HTTP_METHOD_HEAD)
        return reply(connection, MHD_HTTP_METHOD_NOT_ALLOWED, "GET only\n", "text/plain");
    if (std::string_view(url) != "/metrics")
        return reply(connection, MHD_HTTP_NOT_FOUND, "the figures are at /metrics\n", "text/plain");
    return reply(connection, MHD_HTTP_OK, static_cast<const MetricsServer*>(data)->text(),
                 "text/plain; version=0.0.4; charset=utf-8");
}

}  // namespace

Result<void> MetricsServer::listen(std::uint16_t port) {
    if (port == port_) return {};
    stop();
    if (port == 0) return {};
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    errno = 0;
    server_ = MHD_start_daemon(MHD_USE_EPOLL, port, nullptr, nullptr, answer, this, MHD_OPTION_SOCK_ADDR, &address,
                               MHD_OPTION_CONNECTION_LIMIT, most_connections, MHD_OPTION_CONNECTION_TIMEOUT, patience_s,
                               MHD_OPTION_END);
    const auto* about = server_ == nullptr ? nullptr : MHD_get_daemon_info(server_, MHD_DAEMON_INFO_EPOLL_FD);
    if (about == nullptr) {
        const Error error{fmt::format("no metrics: cannot listen at 127.0.0.1:{}: {}", port, std::strerror(errno))};
        stop();
        return error;
    }
    port_ = port;
    ready_ = loop_.watch(about->epoll_fd, EPOLLIN, [this](std::uint32_t) { serve(); }, Urgency::last);
    // Its own time-outs come to notice only when it is run.
    timer_ = loop_.every(std::chrono::seconds(1), [this] { serve(); }, Urgency::last);
    return {};
}

void MetricsServer::serve() { MHD_run(server_); }

void MetricsServer::stop() {
    ready_ = {};
    timer_ = {};
    if (server_ != nullptr) MHD_stop_daemon(server_);
    server_ = nullptr;
    port_ = 0;
}

}  // namespace rdmaquota
