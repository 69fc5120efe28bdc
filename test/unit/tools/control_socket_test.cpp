#include "tools/rdmaquotad/serve/control_socket.hpp"

#include <chrono>
#include <cstring>
#include <string>
#include <string_view>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace std::chrono_literals;

namespace {

// A client that has asked one line.
class Asker {
public:
    Asker(const std::string& path, std::string_view line) {
        sockaddr_un address{};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof address.sun_path - 1);
        REQUIRE(::connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
        REQUIRE(::send(fd_, line.data(), line.size(), 0) == static_cast<ssize_t>(line.size()));
    }
    Asker(const Asker&) = delete;
    ~Asker() { leave(); }
    void leave() {
        if (fd_ >= 0) ::close(fd_);
        fd_ = -1;
    }
    std::string read() const {
        char bytes[256];
        const auto got = ::recv(fd_, bytes, sizeof bytes, MSG_DONTWAIT);
        return got > 0 ? std::string(bytes, static_cast<std::size_t>(got)) : std::string();
    }

private:
    int fd_ = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
};

}  // namespace

TEST_CASE("an answer is held until its time comes, and others do not wait for it") {
    const TemporaryDirectory directory;
    const auto path = directory.path() + "/control.sock";
    Loop loop;
    bool now = false;
    ControlSocket control(loop, [&](const Peer&, std::string_view line) {
        const auto text = std::make_shared<const std::string>(std::string(line) + " answered\n");
        return line == "later" ? Answer{text, false, [&] { return now; }} : Answer{text};
    });
    REQUIRE(control.listen(path));
    const Asker later(path, "later\nagain\n"), other(path, "other\n");
    Asker gone(path, "later\n");
    std::string answers;
    int step = 0, waited = 0;
    const auto ticks = loop.every(10ms, [&] {
        answers += step == 0 ? "" : later.read();
        if (step == 0 && other.read() == "other answered\n") {
            CHECK(later.read().empty());
            gone.leave();
            ++step;
        } else if (step == 1 && control.clients() == 2) {
            CHECK(answers.empty());
            CHECK(control.holds_answers());
            now = true;
            control.send_held();
            ++step;
        } else if (step == 2 && answers.size() > std::strlen("later answered\n")) {
            CHECK(answers == "later answered\nagain answered\n");
            CHECK_FALSE(control.holds_answers());
            loop.stop(0);
        } else if (++waited == 1000) {
            FAIL_CHECK("waits at step " << step);
            loop.stop(0);
        }
    });
    loop.run();
}
