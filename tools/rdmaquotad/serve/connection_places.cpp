#include "tools/rdmaquotad/serve/connection_places.hpp"

#include <algorithm>
#include <tuple>
#include <utility>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tools/common/open_file.hpp"

namespace rdmaquota {
namespace {

struct Question {
    nlmsghdr header;
    inet_diag_req_v2 request;
};

// For the peer's socket, so its own end is the source.
Question question_for(std::uint32_t address, std::uint16_t peer_port, std::uint16_t port) {
    Question question{};
    question.header.nlmsg_len = sizeof question;
    question.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
    question.header.nlmsg_flags = NLM_F_REQUEST;
    question.request.sdiag_family = AF_INET;
    question.request.sdiag_protocol = IPPROTO_TCP;
    question.request.idiag_states = ~0U;
    auto& id = question.request.id;
    id.idiag_sport = htons(peer_port);
    id.idiag_dport = htons(port);
    id.idiag_src[0] = htonl(address);
    id.idiag_dst[0] = htonl(INADDR_LOOPBACK);
    id.idiag_cookie[0] = id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
    return question;
}

}  // namespace

// A socket that was closed has no inode, and would be root's.
std::optional<uid_t> loopback_peer(std::uint32_t address, std::uint16_t peer_port, std::uint16_t port) {
    const OpenFile kernel(::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG));
    const auto question = question_for(address, peer_port, port);
    if (!kernel || ::send(kernel.fd(), &question, sizeof question, 0) < 0) return std::nullopt;
    struct {
        nlmsghdr header;
        inet_diag_msg message;
        char attributes[4096];
    } answer{};
    const auto bytes = ::recv(kernel.fd(), &answer, sizeof answer, 0);  // the kernel has answered within send()
    if (bytes < static_cast<ssize_t>(sizeof answer.header + sizeof answer.message)) return std::nullopt;
    if (answer.header.nlmsg_type != SOCK_DIAG_BY_FAMILY || answer.message.idiag_inode == 0) return std::nullopt;
    return answer.message.idiag_uid;
}

std::optional<int> ConnectionPlaces::begin(int fd, User user, Clock::time_point now) {
    connections_[fd] = {std::move(user), now};
    if (connections_.size() <= all) return std::nullopt;
    const auto dropped = oldest_of_greediest();
    if (dropped) connections_.erase(*dropped);
    return dropped;
}

std::size_t ConnectionPlaces::count(const User& user) const {
    return static_cast<std::size_t>(std::count_if(connections_.begin(), connections_.end(),
                                                  [&](const auto& entry) { return entry.second.user == user; }));
}

std::optional<int> ConnectionPlaces::oldest_of_greediest() const {
    std::map<User, std::size_t> counts;
    for (const auto& [fd, connection] : connections_) ++counts[connection.user];
    const auto rank = [&](const auto& entry) { return std::tuple(counts.at(entry.second.user), -entry.second.began.time_since_epoch()); };
    const auto found = std::max_element(connections_.begin(), connections_.end(),
                                        [&](const auto& a, const auto& b) { return rank(a) < rank(b); });
    return found == connections_.end() ? std::nullopt : std::optional(found->first);
}

}  // namespace rdmaquota
