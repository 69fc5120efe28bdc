// rdmaquota-coordinator: divides what tenants may use over the nodes of a cluster; see docs/cluster.md.
#include <poll.h>

#include <cstdio>
#include <random>

#include <fmt/core.h>

#include "tools/cluster/coordinator/admin.hpp"
#include "tools/cluster/coordinator/server.hpp"
#include "tools/cluster/etcd/etcd_store.hpp"
#include "tools/common/command_line.hpp"
#include "tools/common/config.hpp"

namespace rdmaquota::cluster {
namespace {

struct Options {
    std::string name, listen = "0.0.0.0:9839", certificates = "/etc/rdmaquota/cluster", etcd_certificates, prefix = "/rdmaquota/",
                      control = "/run/rdmaquota-coordinator.sock";
    std::vector<std::string> etcd;
};

int fail(const std::string& why) {
    fmt::print(stderr, "rdmaquota-coordinator: {}\n", why);
    return 1;
}

int serve(const Options& options, const Certificates& own, const Certificates& for_etcd) {
    const int ends = end_signals();  // before any thread of gRPC begins
    SteadyClock clock;
    Mailbox mailbox;
    EtcdStore store(options.etcd, for_etcd, options.prefix, mailbox);
    Coordinator* present = nullptr;
    auto server = Server::start(options.listen, own, mailbox,
                                {[&](StreamId stream, const std::string& node) { present->opened(stream, node); },
                                 [&](StreamId stream, const FromNode& word) { present->received(stream, word); },
                                 [&](StreamId stream) { present->closed(stream); }});
    if (!server) return fail(server.error());
    std::random_device random;
    Coordinator coordinator({clock, store, **server, [&] { return random(); },
                             [](const std::string& note) { fmt::print(stderr, "{}\n", note); }},
                            options.name);
    present = &coordinator;
    Admin admin(coordinator, clock);
    if (const auto listening = admin.listen(options.control); !listening) return fail(listening.error());
    pollfd polled[] = {{ends, POLLIN, 0}, {mailbox.fd(), POLLIN, 0}, {admin.fd(), POLLIN, 0}};
    while (polled[0].revents == 0) {
        coordinator.tick();
        ::poll(polled, 3, 100);
        if (polled[1].revents != 0) mailbox.run();
        if (polled[2].revents != 0) admin.accept();
    }
    ::unlink(options.control.c_str());
    return 0;
}

int run(const Options& options) {
    if (options.name.empty() || options.etcd.empty())
        return fail("needs --name, a name of this coordinator that no other has, and --etcd, the addresses of etcd's members");
    const auto own = Certificates::read(options.certificates);
    if (!own) return fail(own.error());
    const auto for_etcd = Certificates::read(options.etcd_certificates.empty() ? options.certificates : options.etcd_certificates);
    if (!for_etcd) return fail(for_etcd.error());
    if (!options.prefix.ends_with('/')) return fail("--prefix must end with '/'");
    return serve(options, *own, *for_etcd);
}

}  // namespace
}  // namespace rdmaquota::cluster

int main(int argc, char** argv) {
    using namespace rdmaquota;
    cluster::Options options;
    CommandLine line("rdmaquota-coordinator", config::version, "Divides what tenants may use over the nodes of a cluster");
    auto program = line.top_level();
    program.option("--name", "NAME", options.name, "Name of this coordinator, such as its host's");
    program.option("--listen", "ADDRESS:PORT", options.listen, "Where agents connect");
    program.list("--etcd", "HOST:PORT", options.etcd, "A member of etcd; all of them, with commas between them");
    program.option("--certs", "DIR", options.certificates, "Directory with ca.pem, cert.pem and key.pem for the agents");
    program.option("--etcd-certs", "DIR", options.etcd_certificates, "The same for etcd; without it, those of --certs");
    program.option("--prefix", "PREFIX", options.prefix, "What etcd's keys begin with");
    program.option("--control", "PATH", options.control, "Socket of 'rdmaquota cluster'");
    program.action([&options] { return cluster::run(options); });
    const auto status = line.run({argv + 1, argv + argc});
    if (status) return *status;
    cluster::fail(status.error());
    return 2;
}
