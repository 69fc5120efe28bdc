#include "tools/common/control_client.hpp"

#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t longest_answer = 64 << 20;

// An open descriptor, closed at the end.
struct Socket {
    int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    Socket() = default;
    Socket(const Socket&) = delete;
    ~Socket() {
        if (fd >= 0) ::close(fd);
    }
};

bool reach(int fd, const std::string& path, std::chrono::milliseconds patience) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return errno = ENAMETOOLONG, false;
    path.copy(address.sun_path, path.size());
    const timeval time{patience.count() / 1000, patience.count() % 1000 * 1000};
    ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time);
    ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &time, sizeof time);
    return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}

bool exchange(int fd, const std::string& line, std::string& answer) {
    if (::send(fd, line.data(), line.size(), MSG_NOSIGNAL) != std::ssize(line)) return false;
    char bytes[16 * 1024];
    while (!answer.ends_with('\n') && answer.size() < longest_answer) {
        const auto got = ::recv(fd, bytes, sizeof bytes, 0);
        if (got <= 0) return false;
        answer.append(bytes, static_cast<std::size_t>(got));
    }
    return true;
}

}  // namespace

std::string control_path(const std::string& directory) { return directory + "/control.sock"; }

bool sidecar_listens(const std::string& directory) {
    const Socket socket;
    return socket.fd >= 0 && (reach(socket.fd, control_path(directory), std::chrono::milliseconds(10)) || errno == EAGAIN);
}

Result<Json> ask_sidecar(const std::string& directory, Json request, std::chrono::milliseconds patience) {
    return ask_at(control_path(directory), std::move(request), patience, "rdmaquotad");
}

Result<Json> ask_at(const std::string& path, Json request, std::chrono::milliseconds patience, const std::string& program) {
    const auto where = path.substr(0, path.rfind('/'));
    const Socket socket;
    if (socket.fd < 0 || !reach(socket.fd, path, patience))
        return Error{fmt::format("no {0} answers for {1}: {2}; start it, as with 'systemctl start {0}'", program, where, std::strerror(errno))};
    request["version"] = 1;
    std::string text;
    if (!exchange(socket.fd, dump(request) + "\n", text)) return Error{fmt::format("{} for {} does not answer", program, where)};
    auto answer = Json::parse(text, nullptr, false);
    if (!answer.is_object()) return Error{fmt::format("{} answers in words that this rdmaquota does not know", program)};
    if (answer.contains("error")) return Error{printable(answer["error"].is_string() ? answer["error"].get<std::string>() : answer["error"].dump())};
    return answer;
}

}  // namespace rdmaquota
