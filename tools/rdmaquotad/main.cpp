// rdmaquotad: the sidecar; see rdmaquotad(8).
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "shm/paths.hpp"
#include "tools/common/command_line.hpp"
#include "tools/common/config.hpp"
#include "tools/rdmaquotad/daemon.hpp"
#include "tools/rdmaquotad/loop/instance_lock.hpp"
#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string directory;
};

// Descriptors for all the clients that the control sockets allow, and for these.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    constexpr rlim_t enough = ControlSocket::most_clients + TenantSockets::most + 256;
    limit.rlim_cur = limit.rlim_max < enough ? limit.rlim_max : std::max(limit.rlim_cur, enough);
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const Options& options) {
    raise_descriptor_limit();
    if (const auto locked = lock_instance(options.directory); !locked) {
        log(Priority::error, locked.error());
        return EXIT_FAILURE;
    }
    return Daemon(options.directory).run();
}

int main(const std::vector<std::string>& arguments) {
    const char* directory = ::secure_getenv("RDMAQUOTA_DIR");
    Options options{directory != nullptr && *directory != '\0' ? directory : system_directory};
    CommandLine line("rdmaquotad", config::version,
                     "The sidecar of rdmaquota: watches, tells, and changes limits as the policy says");
    auto program = line.top_level();
    program.option("--dir", "DIR", options.directory, "Directory of the running policy and ledgers");
    program.action([&options] { return run(options); });
    const auto status = line.run(arguments);
    if (status) return *status;
    log(Priority::error, status.error());
    return 2;
}

}  // namespace
}  // namespace rdmaquota

int main(int argc, char** argv) {
    try {
        return rdmaquota::main({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        rdmaquota::log(rdmaquota::Priority::error, error.what());
        return EXIT_FAILURE;
    }
}
