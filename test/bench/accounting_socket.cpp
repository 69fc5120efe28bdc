// The rival of an interceptor with a daemon: a collector process counts, and each creation asks it
// over a Unix socket. It is given every advantage: connections stay open, messages are 40 bytes of
// binary, and a release is sent without waiting for an answer.
#include <csignal>
#include <cstring>
#include <map>

#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/processes.hpp"
#include "test/bench/accounting.hpp"
#include "test/bench/measure.hpp"

namespace rdmaquota::bench {
namespace {

struct Message {
    bool is_charge = false;
    Amounts amounts;
    std::uint64_t process_limit[Amounts::capacity] = {};
    std::uint64_t tenant_limit[Amounts::capacity] = {};
};

using Counters = std::array<std::uint64_t, resource_count>;

class Collector {
public:
    explicit Collector(int listener) : listener_(listener), poll_(epoll_create1(EPOLL_CLOEXEC)) { watch(listener_); }

    [[noreturn]] void run() {
        for (;;) {
            epoll_event events[64];
            const int count = epoll_wait(poll_, events, 64, -1);
            for (int i = 0; i < count; ++i) {
                if (events[i].data.fd == listener_)
                    watch(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
                else
                    serve(events[i].data.fd);
            }
        }
    }

private:
    void watch(int fd) {
        epoll_event event{};
        event.events = EPOLLIN;
        event.data.fd = fd;
        epoll_ctl(poll_, EPOLL_CTL_ADD, fd, &event);
    }

    void serve(int fd) {
        Message message;
        if (recv(fd, &message, sizeof message, 0) != sizeof message) return end(fd);
        auto& own = processes_[fd];
        if (!message.is_charge) return add(own, message.amounts, false);
        const char charged = fits(own, message);
        if (charged) add(own, message.amounts, true);
        send(fd, &charged, 1, MSG_NOSIGNAL);
    }

    void end(int fd) {
        for (std::size_t r = 0; r < resource_count; ++r) tenant_[r] -= processes_[fd][r];
        processes_.erase(fd);
        close(fd);
    }

    bool fits(const Counters& own, const Message& message) const {
        for (std::size_t i = 0; i < message.amounts.count; ++i) {
            const auto r = index(message.amounts.resource[i]);
            if (own[r] + message.amounts.amount[i] > message.process_limit[i]) return false;
            if (tenant_[r] + message.amounts.amount[i] > message.tenant_limit[i]) return false;
        }
        return true;
    }

    void add(Counters& own, const Amounts& amounts, bool up) {
        for (std::size_t i = 0; i < amounts.count; ++i) {
            const auto amount = up ? amounts.amount[i] : ~amounts.amount[i] + 1;
            own[index(amounts.resource[i])] += amount;
            tenant_[index(amounts.resource[i])] += amount;
        }
    }

    int listener_;
    int poll_;
    Counters tenant_{};
    std::map<int, Counters> processes_;
};

// In the abstract namespace, so that no file is left.
sockaddr_un address_of(pid_t pid) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    const auto name = "rdmaquota-bench-" + std::to_string(pid);
    name.copy(address.sun_path + 1, sizeof address.sun_path - 2);
    return address;
}

class SocketBooks : public Accounting {
public:
    explicit SocketBooks(const sockaddr_un& address) : fd_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
        if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
            give_up("no connection to the collector");
    }
    ~SocketBooks() override { close(fd_); }
    SocketBooks(const SocketBooks&) = delete;

    bool charge(const Amounts& amounts, const Limits* limits) override {
        Message message{true, amounts, {}, {}};
        for (std::size_t i = 0; i < amounts.count; ++i) {
            message.process_limit[i] = limits[i].process;
            message.tenant_limit[i] = limits[i].tenant;
        }
        char charged = 0;
        send(fd_, &message, sizeof message, MSG_NOSIGNAL);
        return recv(fd_, &charged, 1, 0) == 1 && charged;
    }

    void uncharge(const Amounts& amounts) override {
        const Message message{false, amounts, {}, {}};
        send(fd_, &message, sizeof message, MSG_NOSIGNAL);
    }

private:
    int fd_;
};

class SocketSite : public Site {
public:
    SocketSite() : address_(address_of(getpid())) {
        const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
        if (bind(listener, reinterpret_cast<const sockaddr*>(&address_), sizeof address_) != 0 ||
            listen(listener, 128) != 0)
            give_up("the collector cannot listen");
        collector_ = fork_child();
        if (collector_ == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            Collector(listener).run();
        }
        close(listener);
    }
    ~SocketSite() override {
        kill_child(collector_);
    }
    SocketSite(const SocketSite&) = delete;

    std::unique_ptr<Accounting> join() override { return std::make_unique<SocketBooks>(address_); }

private:
    sockaddr_un address_;
    pid_t collector_;
};

}  // namespace

std::unique_ptr<Site> make_socket_site() { return std::make_unique<SocketSite>(); }

}  // namespace rdmaquota::bench
