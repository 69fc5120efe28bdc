#include "tools/common/process/maps_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string_view>

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/core.h>

#include "tools/common/process/children.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/process/process_stat.hpp"

namespace rdmaquota {
namespace {

using namespace std::chrono_literals;

constexpr auto patience = 1s;  // without a byte
constexpr auto cheap = 2ms;
constexpr int share = 20;  // reading takes one part of so many
// In a row; with `patience`, less than the five seconds after which the guard goes on by itself.
constexpr auto user_burst = 1s * share, burst = 3s * share;
constexpr std::size_t most_silent = 4096, most_users = 1024;
constexpr std::size_t most_unended = 8;  // well below TasksMax of rdmaquotad.service
constexpr std::size_t packet = 32 * 1024;
constexpr char text_follows = 't', end_follows = 'e';  // the first byte of each packet

std::chrono::nanoseconds cpu_time() {
    timespec now{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

bool send_packet(int socket, char kind, std::string_view bytes) {
    std::string whole(1, kind);
    whole.append(bytes);
    return ::send(socket, whole.data(), whole.size(), MSG_NOSIGNAL) == std::ssize(whole);
}

bool answer(int socket, const std::string& path) {
    const auto begin = cpu_time();
    const auto text = file_text(path);
    for (std::size_t at = 0; at < text.size(); at += packet)
        if (!send_packet(socket, text_follows, std::string_view(text).substr(at, packet))) return false;
    return send_packet(socket, end_follows, fmt::format("{}", (cpu_time() - begin).count()));
}

// Holds nothing of its parent's but the socket.
[[noreturn]] void serve(int socket) {
    if (::dup2(socket, 0) < 0) ::_exit(1);
    ::close_range(1, ~0U, 0);
    char path[4096];
    for (ssize_t bytes; (bytes = ::recv(0, path, sizeof path, 0)) > 0;)
        if (!answer(0, std::string(path, static_cast<std::size_t>(bytes)))) break;
    ::_exit(0);
}

// The real user, which a process cannot give away by changing its effective one.
uid_t user_of(const std::string& directory) {
    const auto status = file_text(directory + "/status");
    const auto at = status.find("\nUid:");
    return at == status.npos ? 0 : static_cast<uid_t>(std::strtoul(status.c_str() + at + 5, nullptr, 10));
}

}  // namespace

MapsReader::~MapsReader() { end(); }

void MapsReader::end() {
    if (socket_ >= 0) ::close(std::exchange(socket_, -1));
    end_child(std::exchange(child_, -1));
}

bool MapsReader::begin_child() {
    if (child_ > 0) return true;
    if (unended_children() > most_unended) return false;
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) return false;
    child_ = start_child([&] { serve(ends[1]); });
    ::close(ends[1]);
    if (child_ < 0) return ::close(ends[0]), false;
    socket_ = ends[0];
    return true;
}

bool MapsReader::may_ask(const std::string& directory, const Process& process) {
    const auto now = Clock::now();
    const auto user = user_paid_.find(process.user);
    return !silent_.contains({directory, process.start}) && all_paid_ < now + burst &&
           (user == user_paid_.end() || user->second < now + user_burst);
}

void MapsReader::pay(const Process& process, Clock::duration waited) {
    if (waited <= cheap) return;
    const auto now = Clock::now();
    if (user_paid_.size() >= most_users) std::erase_if(user_paid_, [&](const auto& user) { return user.second < now; });
    all_paid_ = std::max(all_paid_, now) + waited * share;
    if (user_paid_.size() >= most_users) return;
    auto& paid = user_paid_[process.user];
    paid = std::max(paid, now) + waited * share;
}

void MapsReader::note_silence(const std::string& directory, const Process& process) {
    if (silent_.size() >= most_silent) silent_.clear();
    ++silences_;
    silent_.emplace(directory, process.start);
}

// None: nothing came for too long.
std::optional<MapsReader::Maps> MapsReader::receive() {
    Maps maps;
    std::string bytes(packet + 1, '\0');
    for (;;) {
        pollfd readable{socket_, POLLIN, 0};
        const int ready = ::poll(&readable, 1, static_cast<int>(std::chrono::milliseconds(patience).count()));
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) return std::nullopt;
        const auto got = ::recv(socket_, bytes.data(), bytes.size(), 0);
        if (got <= 0) return end(), maps;  // the child has died
        if (bytes[0] == text_follows) {
            maps.text.append(bytes, 1, static_cast<std::size_t>(got) - 1);
            continue;
        }
        maps.cost = std::chrono::nanoseconds(std::strtoll(bytes.substr(1, static_cast<std::size_t>(got) - 1).c_str(), nullptr, 10));
        return maps;
    }
}

std::optional<MapsReader::Maps> MapsReader::read(const std::string& directory) {
    const Process process{start_time_of(directory), user_of(directory)};
    if (!may_ask(directory, process) || !begin_child()) return std::nullopt;
    const auto path = directory + "/maps";
    const auto begin = Clock::now();
    if (::send(socket_, path.data(), path.size(), MSG_NOSIGNAL) != std::ssize(path)) return end(), std::nullopt;
    auto maps = receive();
    pay(process, Clock::now() - begin);
    if (maps) return maps;
    end();
    note_silence(directory, process);
    return std::nullopt;
}

std::optional<MapsReader::Maps> read_maps(const std::string& directory) {
    static MapsReader reader;
    return reader.read(directory);
}

}  // namespace rdmaquota
