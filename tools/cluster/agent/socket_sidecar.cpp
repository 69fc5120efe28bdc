#include "tools/cluster/agent/socket_sidecar.hpp"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>

#include "tools/common/cluster/ceilings_json.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota::cluster {

SocketSidecar::~SocketSidecar() {
    if (events_ >= 0) ::close(events_);
}

Result<NodeReport> SocketSidecar::take(const Delivery* delivery) {
    Json request{{"request", "cluster"}};
    if (delivery != nullptr) request["delivery"] = delivery_json(*delivery);
    const auto answer = ask_sidecar(directory_, std::move(request));
    if (!answer) return Error{answer.error()};
    return parse_report(answer->value("report", Json()));
}

int SocketSidecar::events() {
    if (events_ >= 0) return events_;
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto path = control_path(directory_);
    if (path.size() >= sizeof address.sun_path) return -1;
    path.copy(address.sun_path, path.size());
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    const std::string_view line = "{\"version\":1,\"request\":\"subscribe\"}\n";
    const bool subscribed = fd >= 0 && ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
                            ::send(fd, line.data(), line.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(line.size());
    if (!subscribed && fd >= 0) ::close(fd);
    text_.clear();
    return events_ = subscribed ? fd : -1;
}

// All other events are of no interest here. A line that comes in two parts is found in the second.
bool SocketSidecar::read_events() {
    constexpr std::string_view asked = "\"cluster\":\"asked\"";
    char bytes[16 * 1024];
    bool found = false;
    while (true) {
        const auto got = ::recv(events_, bytes, sizeof bytes, 0);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) {
            if (got == 0 || errno != EAGAIN) {
                ::close(events_);
                events_ = -1;
            }
            return found;
        }
        text_.append(bytes, static_cast<std::size_t>(got));
        found |= text_.find(asked) != std::string::npos;
        text_.erase(0, text_.rfind('\n') + 1);
    }
}

}  // namespace rdmaquota::cluster
