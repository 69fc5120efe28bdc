#include "tools/rdmaquotad/control_socket.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds tick_interval{100};
constexpr int accepted_at_once = 64;

Text refusal(std::string_view why) {
    return std::make_shared<const std::string>(fmt::format("{{\"version\":1,\"error\":\"{}\"}}\n", why));
}

}  // namespace

struct ControlSocket::Client {
    int fd;
    Peer peer;
    Loop::Source source;
    std::string in;             // not yet answered
    std::deque<Text> out;       // not yet sent
    std::size_t sent = 0;       // of the front of `out`
    std::size_t backlog = 0;    // bytes in `out`
    Clock::time_point moved = Clock::now();  // when the last byte was sent
    bool subscribed = false;
    bool ended = false;    // sends no more
    bool closing = false;  // gets what waits for it, then no more
    bool slow = false;     // to be dropped

    ~Client() {
        source = {};
        ::close(fd);
    }
    void queue(Text text) {
        if (out.empty()) moved = Clock::now();
        backlog += text->size();
        out.push_back(std::move(text));
    }
};

ControlSocket::ControlSocket(Loop& loop, std::string path, Handler handler)
    : loop_(loop), path_(std::move(path)), handler_(std::move(handler)) {}

ControlSocket::~ControlSocket() {
    listener_ = {};
    clients_.clear();
    if (fd_ < 0) return;
    ::unlink(path_.c_str());
    ::close(fd_);
}

Result<void> ControlSocket::listen() {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path_.size() >= sizeof address.sun_path)
        return Error{fmt::format("{} is too long for the name of a socket; there is no control socket", path_)};
    path_.copy(address.sun_path, path_.size());
    ::unlink(path_.c_str());
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd_ < 0 || ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
        ::chmod(path_.c_str(), 0666) != 0 || ::listen(fd_, SOMAXCONN) != 0) {
        const Error error{fmt::format("cannot listen at {}: {}", path_, std::strerror(errno))};
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
        return error;
    }
    listener_ = loop_.watch(fd_, EPOLLIN, [this](std::uint32_t) { accept_clients(); }, Urgency::last);
    timer_ = loop_.every(tick_interval, [this] { tick(); });
    return {};
}

void ControlSocket::accept_clients() {
    for (int i = 0; i < accepted_at_once; ++i) {
        const int fd = ::accept4(fd_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) return;
        ucred who{};
        socklen_t size = sizeof who;
        if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0)
            admit(fd, {who.uid, who.pid, who.uid == 0 || who.uid == ::geteuid()});
        else
            ::close(fd);
    }
}

void ControlSocket::admit(int fd, const Peer& peer) {
    auto& user = users_[peer.uid];
    if (clients_.size() >= most_clients || (!peer.privileged && user.clients >= most_clients / 2)) {
        const auto text = refusal("too many clients; try again later");
        (void)!::send(fd, text->data(), text->size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        ::close(fd);
        return;
    }
    ++user.clients;
    auto client = std::make_unique<Client>();
    client->fd = fd;
    client->peer = peer;
    client->source = loop_.watch(
        fd, EPOLLIN, [this, at = client.get()](std::uint32_t events) { serve(*at, events); }, Urgency::last);
    clients_.emplace(fd, std::move(client));
}

void ControlSocket::serve(Client& client, std::uint32_t events) {
    const bool gone = (events & (EPOLLHUP | EPOLLERR)) != 0 && (events & EPOLLIN) == 0;
    if (gone || ((events & EPOLLIN) != 0 && !receive(client))) return drop(client);
    answer_lines(client);
    if (!flush(client)) return drop(client);
    update(client);
}

// False when the client is gone.
bool ControlSocket::receive(Client& client) {
    char bytes[4096];
    const auto got = ::recv(client.fd, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0) return errno == EAGAIN || errno == EINTR;
    if (got == 0) client.ended = true;
    client.in.append(bytes, static_cast<std::size_t>(got));
    return true;
}

// As long as the client takes its answers and its user is not too fast.
void ControlSocket::answer_lines(Client& client) {
    while (!client.closing && !client.slow && client.out.empty()) {
        const auto end = client.in.find('\n');
        if (std::min(end, client.in.size()) > longest_request) {
            client.queue(refusal(fmt::format("a request has at most {} bytes", longest_request)));
            client.closing = true;
            return;
        }
        if (end == std::string::npos || !take_token(client.peer)) return;
        auto answer = handler_(client.peer, std::string_view(client.in).substr(0, end));
        client.in.erase(0, end + 1);
        client.subscribed = client.subscribed || answer.subscribe;
        client.queue(std::move(answer.text));
        if (!flush(client)) client.closing = true;
    }
}

// False when the client is gone, or has got all that it was to get.
bool ControlSocket::flush(Client& client) {
    while (!client.out.empty()) {
        const auto& text = *client.out.front();
        const auto sent =
            ::send(client.fd, text.data() + client.sent, text.size() - client.sent, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) return errno == EAGAIN || errno == EINTR;
        client.moved = Clock::now();
        client.sent += static_cast<std::size_t>(sent);
        client.backlog -= static_cast<std::size_t>(sent);
        if (client.sent < text.size()) continue;
        client.sent = 0;
        client.out.pop_front();
    }
    const bool waits = client.in.find('\n') != std::string::npos;
    return !client.closing && !(client.ended && !waits && !client.subscribed);
}

// Reads on only from a client that has been answered.
void ControlSocket::update(Client& client) {
    const bool busy = !client.out.empty() || client.in.find('\n') != std::string::npos;
    std::uint32_t events = 0;
    if (!busy && !client.ended) events |= EPOLLIN;
    if (!client.out.empty()) events |= EPOLLOUT;
    client.source.set_events(events);
}

void ControlSocket::drop(Client& client) {
    const auto user = users_.find(client.peer.uid);
    if (user != users_.end()) --user->second.clients;
    clients_.erase(client.fd);
}

bool ControlSocket::take_token(const Peer& peer) {
    if (peer.uid == 0) return true;
    auto& tokens = users_[peer.uid].tokens;
    if (tokens < 1) return false;
    tokens -= 1;
    return true;
}

// Goes on with those that had to wait, and loses patience with those that do not read.
void ControlSocket::tick() {
    for (auto& [uid, user] : users_)
        user.tokens = std::min(burst, user.tokens + rate * std::chrono::duration<double>(tick_interval).count());
    std::erase_if(users_, [](const auto& entry) { return entry.second.clients == 0 && entry.second.tokens >= burst; });
    std::vector<Client*> waiting;
    for (const auto& [fd, client] : clients_)
        if (!client->out.empty() || client->in.find('\n') != std::string::npos) waiting.push_back(client.get());
    for (auto* client : waiting) {
        if (client->slow || (!client->out.empty() && Clock::now() - client->moved > patience)) {
            ++dropped_;
            drop(*client);
        } else {
            serve(*client, 0);
        }
    }
}

// Sends and drops nothing itself: it may be called while a client is being served.
void ControlSocket::broadcast(const Text& event) {
    for (const auto& [fd, client] : clients_) {
        if (!client->subscribed || client->closing || client->slow) continue;
        client->queue(event);
        client->slow = client->backlog > longest_backlog;
        update(*client);
    }
}

std::size_t ControlSocket::subscribers() const noexcept {
    return static_cast<std::size_t>(
        std::count_if(clients_.begin(), clients_.end(), [](const auto& entry) { return entry.second->subscribed; }));
}

}  // namespace rdmaquota
