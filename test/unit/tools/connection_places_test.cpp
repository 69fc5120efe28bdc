#include "tools/rdmaquotad/serve/connection_places.hpp"

#include <unistd.h>

#include <arpa/inet.h>
#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tools/common/open_file.hpp"

using namespace rdmaquota;
using namespace std::chrono_literals;

namespace {

constexpr ConnectionPlaces::Clock::time_point start{};

std::uint16_t port_of(int fd) {
    sockaddr_in address{};
    socklen_t length = sizeof address;
    REQUIRE(::getsockname(fd, reinterpret_cast<sockaddr*>(&address), &length) == 0);
    return ntohs(address.sin_port);
}

}  // namespace

TEST_CASE("no user but root takes more than a quarter of the places") {
    ConnectionPlaces places;
    for (int fd = 0; fd < static_cast<int>(ConnectionPlaces::of_user); ++fd) {
        REQUIRE(places.may_begin({1000}));
        places.begin(fd, {1000}, start);
    }
    CHECK(!places.may_begin({1000}));
    CHECK(places.may_begin({1001}));
    CHECK(places.may_begin({}));
    places.end(0);
    CHECK(places.may_begin({1000}));
    CHECK(places.may_begin({{}, "10.0.0.1"}));
    for (int fd = 100; fd < 132; ++fd) places.begin(fd, {0}, start);
    CHECK(places.may_begin({0}));
}

TEST_CASE("where all places are taken, the oldest connection of the user who has most is dropped") {
    ConnectionPlaces places;
    for (int fd = 0; fd < static_cast<int>(ConnectionPlaces::all); ++fd) {
        const uid_t user = fd % 4 == 0 && fd > 40 ? 1001 : fd < 16 ? 1000 : 1002 + static_cast<uid_t>(fd) % 8;
        CHECK(!places.begin(fd, {user}, start + std::chrono::seconds(100 - fd)));
    }
    CHECK(places.begin(1000, {2000}, start + 200s) == std::optional(15));  // that of 1000 which began first
    CHECK(places.connections().size() == ConnectionPlaces::all);
    CHECK(places.connections().contains(1000));
    CHECK(!places.connections().contains(15));
}

TEST_CASE("the kernel tells whose the other end of a connection is, until it is closed") {
    const OpenFile listener(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(listener.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(listener.fd(), 1) == 0);
    address.sin_port = htons(port_of(listener.fd()));
    std::uint16_t port = 0;
    {
        const OpenFile client(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
        REQUIRE(::connect(client.fd(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
        port = port_of(client.fd());
        CHECK(loopback_peer(INADDR_LOOPBACK, port, ntohs(address.sin_port)) == std::optional(::geteuid()));
    }
    CHECK(!loopback_peer(INADDR_LOOPBACK, port, ntohs(address.sin_port)));
}
