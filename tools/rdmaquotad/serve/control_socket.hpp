// The daemon's Unix socket: many clients, one JSON line each way.
//
// No client can make the daemon wait, or grow, or keep root out:
//
// * a request has at most `longest_request` bytes, and one is answered at a time: the next when the client has
//   taken the answer, and after all others that are ready; root's before those;
// * a client is dropped when its answer does not move for `patience`, or is not through after `longest_delivery`,
//   when more than `longest_backlog` bytes of events wait for it, and when it neither asks nor listens for
//   `longest_idle`, root's excepted;
// * a user's requests wait while its clients have `most_unsent_by_user` bytes of answers to take, or all users'
//   `most_unsent`, or when it asks faster than `rate`, an answer counting as one for each `token_bytes`;
// * a user has at most half of the places, and root alone the last ones.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include <sys/types.h>

#include "policy/result.hpp"
#include "tools/rdmaquotad/core/loop.hpp"

namespace rdmaquota {

// Who is at the other end, as the kernel says (SO_PEERCRED).
struct Peer {
    uid_t uid;
    pid_t pid;
    bool privileged;  // root, or the user that the daemon runs as
};

// One or more whole lines. Shared, since many clients get the same.
using Text = std::shared_ptr<const std::string>;

struct Answer {
    Text text;
    bool subscribe = false;  // the client wants events from now on
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

    // Nobody else may listen at `path`: what is there is replaced. `handler` answers each request.
    ControlSocket(Loop& loop, std::string path, Handler handler);
    ControlSocket(const ControlSocket&) = delete;
    ~ControlSocket();
    Result<void> listen();

    void broadcast(const Text& event);  // to those who subscribed
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

    void accept_clients();
    void pause();
    void resume();
    bool has_place(const Peer& peer);
    void admit(int fd, const Peer& peer);
    void serve(Client& client, std::uint32_t events);
    bool receive(Client& client);
    void answer_line(Client& client);
    bool may_ask(const Client& client);
    void owe(Client& client, std::size_t bytes);
    bool flush(Client& client);
    void update(Client& client);
    bool stuck(const Client& client) const;
    void drop(Client& client);
    void tick();

    Loop& loop_;
    std::string path_;
    Handler handler_;
    std::size_t places_;  // at most `most_clients`, less when there are not as many descriptors
    int fd_ = -1;
    bool paused_ = false;  // there was no descriptor for a client
    Clock::time_point paused_at_;
    Loop::Source listener_;
    Loop::Source timer_;
    std::map<int, std::unique_ptr<Client>> clients_;  // by descriptor
    std::map<uid_t, User> users_;
    std::size_t unsent_ = 0;  // by those who are not privileged
    std::uint64_t dropped_ = 0;
};

}  // namespace rdmaquota
