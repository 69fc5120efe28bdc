// The daemon's Unix sockets: many clients, one JSON line each way. One is the node's. The others are of one tenant each,
// in the directory that its containers get: who asks there sees that tenant alone, and is nobody's root.
//
// No client can make the daemon wait, exhaust its memory, or keep root out:
//
// * A request has at most `longest_request` bytes. Each client has one request answered at a time; the next one's turn
//   comes when the client has read the answer, and after all other clients that are ready. Root's come first.
// * A client is dropped when it reads none of its answer for `patience`, or not all of it in `longest_delivery`; when
//   more than `longest_backlog` bytes of events wait for it; and, unless it is root's, when it neither asks nor
//   subscribes for `longest_idle`.
// * A user's requests wait while the clients of that user have not read `most_unsent_by_user` bytes of answers, or
//   those of all users `most_unsent`; and while the user asks faster than `rate`, where each `token_bytes` of an answer
//   count as a request.
// * A user has at most half of the places of all sockets together, and the last `places_for_root` are for root alone. Where these
//   are taken, the user's own client that has asked for nothing for the longest time is dropped for a new one, or that of the user
//   who has most, where that is another.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "policy/result.hpp"
#include "tools/rdmaquotad/loop/loop.hpp"
#include "tools/rdmaquotad/serve/listening_socket.hpp"

namespace rdmaquota {

// The process at the other end, by the kernel's word (SO_PEERCRED).
struct Peer {
    uid_t uid;
    pid_t pid;
    bool privileged;            // root, or the user that the daemon runs as, at the node's socket
    std::vector<gid_t> groups;  // the primary one, too
    std::string tenant;         // the key of the one at whose socket it asks; empty: at the node's

    bool unbounded() const noexcept { return uid == 0 && tenant.empty(); }
};

// One or more whole lines, shared by all clients that get the same.
using Text = std::shared_ptr<const std::string>;

struct Answer {
    Text text;
    bool subscribe = false;  // the client wants events from now on
    std::function<bool()> when{};  // whether the time to send it has come; empty: it has
};

class ControlSocket {
public:
    static constexpr std::size_t most_clients = 1024;
    static constexpr std::size_t places_for_root = 32;
    static constexpr std::size_t longest_request = 16 * 1024;
    static constexpr std::size_t longest_backlog = 256 * 1024;
    static constexpr std::size_t most_unsent = 32 << 20;
    static constexpr std::size_t most_unsent_by_user = 8 << 20;
    static constexpr std::chrono::seconds patience{10};
    static constexpr std::chrono::seconds longest_delivery{60};
    static constexpr std::chrono::seconds longest_idle{60};
    static constexpr double rate = 200;   // requests a second, by all clients of a user
    static constexpr double burst = 1000;
    static constexpr double token_bytes = 32 * 1024;

    using Handler = std::function<Answer(const Peer&, std::string_view line)>;

    // `handler` answers each request.
    ControlSocket(Loop& loop, Handler handler);
    ControlSocket(const ControlSocket&) = delete;
    ~ControlSocket();
    // Replaces whatever is at `path`. For the tenant with this key; for the node without one.
    Result<void> listen(const std::string& path, const std::string& tenant = {});
    // Sends answers whose time has come.
    void send_held();
    bool holds_answers() const noexcept;
    // Whether the socket is where it was made.
    bool listens(const std::string& tenant) const;
    // Clients that a tenant's socket has let in stay.
    void stop_listening(const std::string& tenant) { listeners_.erase(tenant); }

    // To all subscribers for which `sees` is true.
    void broadcast(const Text& event, const std::function<bool(const Peer&)>& sees);
    std::size_t clients() const noexcept { return clients_.size(); }
    std::size_t subscribers() const noexcept;
    std::uint64_t dropped() const noexcept { return dropped_; }  // for not reading

private:
    struct Client;
    struct User {
        std::size_t clients = 0;
        std::size_t unsent = 0;  // bytes of answers
        double tokens = burst;   // may be less than nothing, after a long answer
    };
    using Clock = std::chrono::steady_clock;

    using Who = std::pair<std::string, uid_t>;  // at a tenant's socket, or the node's
    static Who who(const Peer& peer) { return {peer.tenant, peer.uid}; }

    void accept_clients();
    void accept_from(ListeningSocket& listener, const std::string& tenant);
    void pause();
    void resume();
    bool has_place(const Peer& peer);
    bool make_place(const Peer& peer);
    bool drop_idlest(uid_t user);
    std::size_t clients_of(uid_t user) const;
    void admit(int fd, const Peer& peer);
    void serve(Client& client, std::uint32_t events);
    bool receive(Client& client);
    void answer_line(Client& client);
    void give(Client& client, Text text);
    bool may_ask(const Client& client);
    void owe(Client& client, std::size_t bytes);
    bool flush(Client& client);
    void update(Client& client);
    bool stuck(const Client& client) const;
    void drop(Client& client);
    void tick();

    Loop& loop_;
    Handler handler_;
    std::size_t places_;  // at most `most_clients`; fewer when descriptors are scarce
    bool paused_ = false;  // no descriptor was left for a client
    Clock::time_point paused_at_;
    std::map<std::string, ListeningSocket> listeners_;  // by tenant
    Loop::Source timer_;
    std::map<int, std::unique_ptr<Client>> clients_;  // by descriptor
    std::map<Who, User> users_;
    std::map<uid_t, std::size_t> places_of_;  // how many each user has, at whichever socket; privileged clients apart
    std::size_t unsent_ = 0;  // to clients that are not privileged
    std::uint64_t dropped_ = 0;
};

}  // namespace rdmaquota
