#include "tools/rdmaquotad/serve/control_socket.hpp"

#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

constexpr std::chrono::milliseconds tick_interval{100};
constexpr std::chrono::seconds pause_length{1};
constexpr int accepted_at_once = 64;
constexpr int send_buffer = 16 * 1024;         // the kernel's, for each client; it counts as the daemon's memory
constexpr rlim_t other_descriptors = 416;      // for everything else in the daemon, with tenants' sockets
constexpr std::size_t fewest_places = 16;

std::size_t places_for(std::size_t most) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= most + other_descriptors) return most;
    return limit.rlim_cur < fewest_places + other_descriptors ? fewest_places : limit.rlim_cur - other_descriptors;
}

// unix(7), SO_PEERGROUPS: the supplementary ones.
std::vector<gid_t> groups_of(int fd, gid_t primary) {
    std::vector<gid_t> groups(64);
    auto bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
    int status = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
    groups.resize(bytes / sizeof(gid_t));
    if (status != 0 && errno == ERANGE) status = ::getsockopt(fd, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
    if (status != 0) groups.clear();
    groups.push_back(primary);
    return groups;
}

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
    Answer held{};              // one whose time has not come
    std::size_t sent = 0;       // of the front of `out`
    std::size_t backlog = 0;    // bytes in `out`
    std::size_t owed = 0;       // bytes of the answer in `out`, the whole answer, until the client has read it
    Clock::time_point asked = Clock::now();  // last
    Clock::time_point began = Clock::now();  // when there was something to send
    Clock::time_point moved = Clock::now();  // when the last byte was sent, or its turn began
    bool turn = false;     // to be answered as soon as it is writable
    bool subscribed = false;
    bool ended = false;    // sends no more
    bool closing = false;  // gets what waits for it, then is dropped
    bool slow = false;     // to be dropped

    ~Client() {
        source = {};
        ::close(fd);
    }
    void queue(Text text) {
        if (out.empty()) began = moved = Clock::now();
        backlog += text->size();
        out.push_back(std::move(text));
    }
    bool asks() const {
        return !closing && !slow && !held.when && (in.size() > longest_request || in.find('\n') != std::string::npos);
    }
};

ControlSocket::ControlSocket(Loop& loop, Handler handler)
    : loop_(loop), handler_(std::move(handler)), places_(places_for(most_clients)) {
    timer_ = loop_.every(tick_interval, [this] { tick(); });
}

ControlSocket::~ControlSocket() = default;

Result<void> ControlSocket::listen(const std::string& path, const std::string& tenant) {
    listeners_.erase(tenant);
    auto& listener = listeners_.try_emplace(tenant, loop_, path, [this] { accept_clients(); }).first->second;
    if (listener.error().empty()) return {};
    const Error error{listener.error()};
    listeners_.erase(tenant);
    return error;
}

bool ControlSocket::listens(const std::string& tenant) const {
    const auto found = listeners_.find(tenant);
    return found != listeners_.end() && found->second.in_place();
}

void ControlSocket::accept_clients() {
    for (auto& [tenant, listener] : listeners_) accept_from(listener, tenant);
}

void ControlSocket::accept_from(ListeningSocket& listener, const std::string& tenant) {
    for (int i = 0; i < accepted_at_once && !paused_; ++i) {
        const int fd = listener.accept();
        if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
        if (fd < 0 && errno != EAGAIN) return pause();
        if (fd < 0) return;
        ucred who{};
        socklen_t size = sizeof who;
        const bool known = ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0;
        const bool privileged = tenant.empty() && (who.uid == 0 || who.uid == ::geteuid());
        if (known) admit(fd, {who.uid, who.pid, privileged, groups_of(fd, who.gid), tenant});
        else ::close(fd);
    }
}

void ControlSocket::pause() {
    paused_ = true;
    paused_at_ = Clock::now();
    for (auto& [tenant, listener] : listeners_) listener.pause();
}

void ControlSocket::resume() {
    if (paused_)
        for (auto& [tenant, listener] : listeners_) listener.resume();
    paused_ = false;
}

bool ControlSocket::has_place(const Peer& peer) {
    if (peer.privileged) return clients_.size() < places_;
    const auto reserved = std::min(places_for_root, places_ / 4);
    if (clients_of(peer.uid) >= places_ / 2) return drop_idlest(peer.uid);
    return clients_.size() < places_ - reserved || make_place(peer);
}

std::size_t ControlSocket::clients_of(uid_t user) const {
    const auto found = places_of_.find(user);
    return found == places_of_.end() ? 0 : found->second;
}

// Takes a place of the user who has most. False where nobody has more than this one.
bool ControlSocket::make_place(const Peer& peer) {
    const auto most = std::max_element(places_of_.begin(), places_of_.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    return most != places_of_.end() && most->second > clients_of(peer.uid) && drop_idlest(most->first);
}

// Drops the user's client that has asked for nothing for the longest time.
bool ControlSocket::drop_idlest(uid_t user) {
    Client* idlest = nullptr;
    for (const auto& [fd, client] : clients_)
        if (!client->peer.privileged && client->peer.uid == user && (!idlest || client->asked < idlest->asked))
            idlest = client.get();
    if (!idlest) return false;
    ++dropped_;
    drop(*idlest);
    return true;
}

void ControlSocket::admit(int fd, const Peer& peer) {
    if (!has_place(peer)) {
        const auto text = refusal("too many clients; try again later");
        (void)!::send(fd, text->data(), text->size(), MSG_NOSIGNAL | MSG_DONTWAIT);
        ::close(fd);
        return;
    }
    ++users_[who(peer)].clients;
    if (!peer.privileged) ++places_of_[peer.uid];
    ::setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &send_buffer, sizeof send_buffer);
    auto client = std::make_unique<Client>();
    client->fd = fd;
    client->peer = peer;
    client->source = loop_.watch(
        fd, EPOLLIN, [this, at = client.get()](std::uint32_t events) { serve(*at, events); },
        peer.privileged ? Urgency::usual : Urgency::last);
    clients_.emplace(fd, std::move(client));
}

void ControlSocket::serve(Client& client, std::uint32_t events) {
    const bool gone = (events & (EPOLLHUP | EPOLLERR)) != 0 && (events & EPOLLIN) == 0;
    if (gone || ((events & EPOLLIN) != 0 && !receive(client)) || !flush(client)) return drop(client);
    answer_line(client);
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

// Answers one request, if the client has read everything and its turn has come.
void ControlSocket::answer_line(Client& client) {
    if (!client.out.empty() || !client.asks() || !may_ask(client)) return;
    const auto end = client.in.find('\n');
    if (std::min(end, client.in.size()) > longest_request) {
        client.queue(refusal(fmt::format("a request has at most {} bytes", longest_request)));
        client.closing = true;
        return;
    }
    auto answer = handler_(client.peer, std::string_view(client.in).substr(0, end));
    client.in.erase(0, end + 1);
    client.asked = Clock::now();
    client.subscribed = client.subscribed || answer.subscribe;
    if (!client.peer.unbounded())
        users_[who(client.peer)].tokens -= 1 + static_cast<double>(answer.text->size()) / token_bytes;
    client.turn = false;
    if (answer.when) client.held = std::move(answer);
    else give(client, std::move(answer.text));
}

void ControlSocket::give(Client& client, Text text) {
    owe(client, text->size());
    client.queue(std::move(text));
}

void ControlSocket::send_held() {
    for (const auto& [fd, client] : clients_) {
        if (!client->held.when || !client->held.when()) continue;
        give(*client, std::exchange(client->held, {}).text);
        update(*client);
    }
}

bool ControlSocket::holds_answers() const noexcept {
    return std::any_of(clients_.begin(), clients_.end(), [](const auto& entry) { return bool(entry.second->held.when); });
}

// Whether its user neither asks too fast nor leaves too much unread.
bool ControlSocket::may_ask(const Client& client) {
    if (client.peer.unbounded()) return true;
    const auto& user = users_[who(client.peer)];
    if (user.tokens < 1) return false;
    return client.peer.privileged || (user.unsent < most_unsent_by_user && unsent_ < most_unsent);
}

void ControlSocket::owe(Client& client, std::size_t bytes) {
    if (client.peer.privileged) return;
    auto& user = users_[who(client.peer)];
    user.unsent += bytes - client.owed;
    unsent_ += bytes - client.owed;
    client.owed = bytes;
}

// False when the client is gone, or nothing more is to be sent to it.
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
    owe(client, 0);
    const bool waits = client.held.when || client.in.find('\n') != std::string::npos;
    return !client.closing && !(client.ended && !waits && !client.subscribed);
}

// Reads only from a client that was answered. One that asks is served after the others, as soon as it is writable, or
// after the next tick if its user has to wait.
void ControlSocket::update(Client& client) {
    const bool asks = client.asks();
    const bool turn = client.out.empty() && asks && may_ask(client);
    if (turn && !client.turn) client.moved = Clock::now();
    client.turn = turn;
    std::uint32_t events = 0;
    if (client.out.empty() && !asks && !client.held.when && !client.ended) events |= EPOLLIN;
    if (!client.out.empty() || turn) events |= EPOLLOUT;
    client.source.set_events(events);
}

// Whether the client is to be dropped.
bool ControlSocket::stuck(const Client& client) const {
    const auto now = Clock::now();
    if (client.slow) return true;
    if (client.held.when) return false;
    if (client.turn) return now - client.moved > patience;
    if (!client.out.empty())
        return now - client.moved > patience || (!client.subscribed && now - client.began > longest_delivery);
    return !client.peer.privileged && !client.subscribed && !client.asks() && now - client.asked > longest_idle;
}

void ControlSocket::drop(Client& client) {
    owe(client, 0);
    const auto user = users_.find(who(client.peer));
    if (user != users_.end()) --user->second.clients;
    if (const auto places = places_of_.find(client.peer.uid); !client.peer.privileged && places != places_of_.end())
        if (--places->second == 0) places_of_.erase(places);
    clients_.erase(client.fd);
    resume();
}

// Serves clients that had to wait, drops those that are stuck, and admits new ones, however busy others keep the loop.
void ControlSocket::tick() {
    for (auto& [who, user] : users_)
        user.tokens = std::min(burst, user.tokens + rate * std::chrono::duration<double>(tick_interval).count());
    std::erase_if(users_, [](const auto& entry) { return entry.second.clients == 0 && entry.second.tokens >= burst; });
    std::vector<Client*> gone;
    for (const auto& [fd, client] : clients_) {
        if (stuck(*client)) gone.push_back(client.get());
        else if (client->asks()) update(*client);
    }
    for (auto* client : gone) {
        dropped_ += client->out.empty() && !client->turn ? 0 : 1;
        drop(*client);
    }
    if (Clock::now() - paused_at_ > pause_length) resume();
    accept_clients();
}

// Only queues, since it may be called while a client is being served.
void ControlSocket::broadcast(const Text& event, const std::function<bool(const Peer&)>& sees) {
    for (const auto& [fd, client] : clients_) {
        if (!client->subscribed || client->closing || client->slow || !sees(client->peer)) continue;
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
