// What the provider asks the sidecar, as it arrives at the socket.
#include <string>

#include <catch2/catch.hpp>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "policy/tenant.hpp"
#include "provider/host/sidecar_request.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;

namespace {

class Listener {
public:
    Listener() {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        directory.path().copy(address.sun_path, directory.path().size());
        std::string("/control.sock").copy(address.sun_path + directory.path().size(), 13);
        REQUIRE(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
        REQUIRE(::listen(socket_, 1) == 0);
    }
    Listener(const Listener&) = delete;
    ~Listener() { ::close(socket_); }

    // Of a client that has come and gone.
    std::string received() const {
        const int client = ::accept4(socket_, nullptr, nullptr, SOCK_CLOEXEC);
        REQUIRE(client >= 0);
        std::string text(4096, '\0');
        const auto length = ::read(client, text.data(), text.size());
        ::close(client);
        text.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
        return text;
    }

    TemporaryDirectory directory;

private:
    int socket_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

std::string grant_of(const std::string& tenant) { return R"({"version":1,"request":"grant","tenant":")" + tenant + "\"}\n"; }

}  // namespace

TEST_CASE("a request for a grant names its tenant, whatever the name has in it") {
    const Listener sidecar;
    const auto sent = [&](const std::string& tenant) {
        provider::ask_for_grant(sidecar.directory.path(), tenant, 0);
        return sidecar.received();
    };
    CHECK(sent("physics/atlas") == grant_of("physics/atlas"));
    CHECK(sent(R"(user/SITE\alice)") == grant_of(R"(user/SITE\\alice)"));
    CHECK(sent(R"(a"b)") == grant_of(R"(a\"b)"));
    const std::size_t longest = tenant_name_bytes - 1;
    CHECK(sent(std::string(longest, '\\')) == grant_of(std::string(2 * longest, '\\')));
}
