// rdmaquota-agent: connects this node's sidecar with the coordinators of the cluster; see docs/cluster.md.
#include <poll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "tools/cluster/agent/socket_sidecar.hpp"
#include "tools/cluster/agent/stream.hpp"
#include "tools/common/command_line.hpp"
#include "tools/common/config.hpp"

namespace rdmaquota::cluster {
namespace {

using namespace std::chrono_literals;

struct Options {
    std::string directory, certificates = "/etc/rdmaquota/cluster";
    std::vector<std::string> coordinators;
};

int fail(const std::string& why) {
    fmt::print(stderr, "rdmaquota-agent: {}\n", why);
    return 1;
}

int serve(const Options& options, const Certificates& certificates) {
    const int ends = end_signals();  // before any thread of gRPC begins
    SteadyClock clock;
    Mailbox mailbox;
    SocketSidecar sidecar(options.directory);
    Agent* present = nullptr;
    Stream stream(options.coordinators, certificates, mailbox, [&]() -> Agent& { return *present; });
    std::random_device random;
    Agent agent({clock, sidecar, stream, [&] { return random(); }, [](const std::string& note) { fmt::print(stderr, "{}\n", note); }});
    present = &agent;
    pollfd polled[] = {{ends, POLLIN, 0}, {mailbox.fd(), POLLIN, 0}, {-1, POLLIN, 0}};
    while (polled[0].revents == 0) {
        agent.tick();
        polled[2].fd = sidecar.events();
        const auto wait = std::chrono::ceil<std::chrono::milliseconds>(agent.next_tick() - clock.now());
        ::poll(polled, 3, static_cast<int>(std::clamp<std::int64_t>(wait.count(), 1, 1000)));
        if (polled[2].revents != 0 && sidecar.read_events()) agent.asked();
        if (polled[1].revents != 0) mailbox.run();
    }
    return 0;
}

int run(const Options& options) {
    if (options.coordinators.empty()) return fail("needs --coordinators, the addresses of all coordinators");
    const auto certificates = Certificates::read(options.certificates);
    if (!certificates) return fail(certificates.error());
    return serve(options, *certificates);
}

}  // namespace
}  // namespace rdmaquota::cluster

int main(int argc, char** argv) {
    using namespace rdmaquota;
    const char* directory = ::secure_getenv("RDMAQUOTA_DIR");
    cluster::Options options;
    options.directory = directory != nullptr && *directory != '\0' ? directory : system_directory;
    CommandLine line("rdmaquota-agent", config::version, "Connects this node's rdmaquotad with the coordinators of the cluster");
    auto program = line.top_level();
    program.option("--dir", "DIR", options.directory, "Directory of the running policy and ledgers");
    program.list("--coordinators", "HOST:PORT", options.coordinators, "A coordinator; all of them, with commas between them");
    program.option("--certs", "DIR", options.certificates, "Directory with ca.pem, cert.pem and key.pem");
    program.action([&options] { return cluster::run(options); });
    const auto status = line.run({argv + 1, argv + argc});
    if (status) return *status;
    cluster::fail(status.error());
    return 2;
}
