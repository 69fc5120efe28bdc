// The daemon's Unix socket: many clients, one JSON line each way.
//
// No client can make the daemon wait, or grow: a request has at most `longest_request` bytes; a client
// that does not read is not read from, and is dropped when its answer does not move for `patience` or
// more than `longest_backlog` bytes of events wait for it; a user that asks faster than `rate` is served
// at that rate; a user other than root has at most half of all clients.
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
#include "tools/rdmaquotad/loop.hpp"

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
    static constexpr std::size_t longest_request = 16 * 1024;
    static constexpr std::size_t longest_backlog = 256 * 1024;
    static constexpr std::chrono::seconds patience{10};
    static constexpr double rate = 200;   // requests a second, by all clients of a user
    static constexpr double burst = 1000;

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
        double tokens = burst;
    };

    void accept_clients();
    void admit(int fd, const Peer& peer);
    void serve(Client& client, std::uint32_t events);
    bool receive(Client& client);
    void answer_lines(Client& client);
    bool flush(Client& client);
    void update(Client& client);
    void drop(Client& client);
    bool take_token(const Peer& peer);
    void tick();

    Loop& loop_;
    std::string path_;
    Handler handler_;
    int fd_ = -1;
    Loop::Source listener_;
    Loop::Source timer_;
    std::map<int, std::unique_ptr<Client>> clients_;  // by descriptor
    std::map<uid_t, User> users_;
    std::uint64_t dropped_ = 0;
};

}  // namespace rdmaquota
