#include "tools/cluster/coordinator/admin.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "tools/common/views/json.hpp"

namespace rdmaquota::cluster {
namespace {

constexpr std::size_t longest_line = 32 << 20;

void say(int client, const Json& json) {
    const auto text = dump(json) + "\n";
    for (std::size_t sent = 0; sent < text.size();) {
        const auto count = ::send(client, text.data() + sent, text.size() - sent, MSG_NOSIGNAL);
        if (count <= 0) break;
        sent += static_cast<std::size_t>(count);
    }
    ::close(client);
}

void refuse(int client, const std::string& why) { say(client, Json{{"error", why}}); }

Json number_or_null(Sum number) { return Json(static_cast<std::uint64_t>(std::min<Sum>(number, UINT64_MAX))); }
Json known_or_null(std::uint64_t amount) { return amount == unknown ? Json() : Json(amount); }

Result<ClusterRecord> record_of(const Json& request) {
    ClusterRecord record;
    const Error wrong{"the request to apply a file is not as this version has it"};
    const auto amount = [&](const Json& entry, PoolName& pool, std::uint64_t& value) {
        const auto resource = find_resource(entry.value("resource", ""));
        pool.tenant = entry.value("tenant", "");
        value = entry.value("amount", std::uint64_t{0});
        if (resource) pool.resource = *resource;
        return resource && !pool.tenant.empty();
    };
    const auto pools = request.value("pools", Json::array()), nodes = request.value("nodes", Json::object());
    for (const auto& entry : pools) {
        Pool pool;
        if (!amount(entry, pool.name, pool.limit)) return wrong;
        record.pools.push_back(std::move(pool));
    }
    for (const auto& [name, entry] : nodes.items()) {
        auto& node = record.roster[name];
        node.weight = entry.value("weight", 100U);
        const auto floors = entry.value("floors", Json::array());
        for (const auto& floor : floors) {
            PoolName pool;
            std::uint64_t value = 0;
            if (!amount(floor, pool, value)) return wrong;
            node.floors[pool] = value;
        }
    }
    return record;
}

}  // namespace

Admin::~Admin() {
    if (fd_ >= 0) ::close(fd_);
}

Result<void> Admin::listen(const std::string& path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    if (path.size() >= sizeof address.sun_path) return Error{fmt::format("{}: the path is too long for a socket", path)};
    path.copy(address.sun_path, path.size());
    ::unlink(path.c_str());
    fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const auto mask = ::umask(0177);
    const bool bound = fd_ >= 0 && ::bind(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 && ::listen(fd_, 16) == 0;
    ::umask(mask);
    if (bound) return {};
    return Error{fmt::format("cannot listen on {}: {}", path, std::strerror(errno))};
}

void Admin::accept() {
    const int client = ::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (client < 0) return;
    const timeval second{1, 0};
    ::setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
    ::setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
    std::string line;
    char bytes[64 * 1024];
    while (!line.ends_with('\n') && line.size() < longest_line) {
        const auto got = ::recv(client, bytes, sizeof bytes, 0);
        if (got <= 0) return void(::close(client));
        line.append(bytes, static_cast<std::size_t>(got));
    }
    answer(client, line);
}

Coordinator::Done Admin::reply(int client) {
    return [client](const Result<void>& done) {
        if (done) say(client, Json{{"done", true}});
        else refuse(client, done.error());
    };
}

void Admin::answer(int client, const std::string& line) {
    const auto request = Json::parse(line, nullptr, false);
    if (!request.is_object()) return refuse(client, "a request is one line with a JSON object");
    const auto kind = request.value("request", "");
    if (kind == "status") return say(client, status());
    if (!coordinator_.leads())
        return refuse(client, fmt::format("this coordinator does not lead; {}", coordinator_.leader().empty() ? "nobody does: does etcd answer?"
                                                                                                          : "run it where " + coordinator_.leader() + " runs"));
    if (kind == "show") return say(client, show(request.value("tenant", "")));
    if (kind == "apply") return apply(client, request);
    if (kind == "forget") return coordinator_.forget(request.value("node", ""), request.value("number", std::uint64_t{0}), reply(client));
    if (kind == "restored") return coordinator_.restored(reply(client));
    refuse(client, "\"request\" must be one of status, show, apply, forget, restored");
}

void Admin::apply(int client, const Json& request) {
    auto record = record_of(request);
    if (!record) return refuse(client, record.error());
    coordinator_.apply(std::move(*record), reply(client));
}

Json Admin::show(const std::string& tenant) const {
    Json pools = Json::array();
    const auto& books = coordinator_.books();
    for (std::size_t p = 0; p < books.record().pools.size(); ++p) {
        const auto& [id, name, limit] = books.record().pools[p];
        if (!tenant.empty() && name.tenant != tenant) continue;
        Sum use = 0, stranded = 0;
        std::size_t unreported = 0;
        Json nodes = Json::array();
        for (const auto& [node_name, node] : books.nodes()) {
            const auto& row = node.rows[p];
            use += row.use;
            unreported += row.held == unknown;
            if (!node.connected && row.held != unknown && row.held > row.use) stranded += row.held - row.use;
            nodes.push_back({{"node", node_name}, {"answers", node.connected}, {"ceiling", row.ceiling == unset ? Json() : Json(row.ceiling)},
                             {"held", known_or_null(row.held)}, {"use", row.use}, {"wanted", row.want}, {"floor", row.floor}});
        }
        const auto& sums = books.sums()[p];
        pools.push_back({{"tenant", name.tenant}, {"resource", info(name.resource).name}, {"limit", limit}, {"held", number_or_null(sums.held)},
                         {"use", number_or_null(use)}, {"stranded", number_or_null(stranded)}, {"unknown_nodes", unreported}, {"short", sums.is_short},
                         {"nodes", std::move(nodes)}});
    }
    return {{"pools", std::move(pools)}};
}

Json Admin::status() const {
    Json nodes = Json::array();
    const auto now = clock_.now();
    for (const auto& [name, node] : coordinator_.books().nodes()) {
        const auto since = coordinator_.away_since(name);
        const auto refused = coordinator_.refused().find(name);
        nodes.push_back({{"node", name}, {"answers", node.connected}, {"in_roster", node.in_roster},
                         {"away_s", since ? Json(std::chrono::duration_cast<std::chrono::seconds>(now - *since).count()) : Json()},
                         {"number", node.key ? node.key->number : 0}, {"hardware", node.key ? node.key->hardware : ""},
                         {"boot", node.report ? node.report->boot : ""},
                         {"refused", refused == coordinator_.refused().end() ? Json() : Json(refused->second)}});
    }
    return {{"leads", coordinator_.leads()}, {"leader", coordinator_.leader()}, {"epoch", coordinator_.books().epoch()},
            {"writes", coordinator_.writes()}, {"nodes", std::move(nodes)}};
}

}  // namespace rdmaquota::cluster
