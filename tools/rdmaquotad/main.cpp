// rdmaquotad: the sidecar; see rdmaquotad(8).
#include <sys/resource.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include <CLI/CLI.hpp>

#include "shm/paths.hpp"
#include "tools/common/config.hpp"
#include "tools/common/reload.hpp"
#include "tools/rdmaquotad/core/daemon.hpp"
#include "tools/rdmaquotad/core/instance_lock.hpp"
#include "tools/rdmaquotad/core/log.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string directory;
    std::string policy_file;
};

// Descriptors for all the clients that the control socket allows.
void raise_descriptor_limit() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    constexpr rlim_t enough = ControlSocket::most_clients + 256;
    limit.rlim_cur = limit.rlim_max < enough ? limit.rlim_max : std::max(limit.rlim_cur, enough);
    ::setrlimit(RLIMIT_NOFILE, &limit);
}

int run(const Options& options) {
    raise_descriptor_limit();
    if (const auto locked = lock_instance(options.directory); !locked) {
        log(Priority::error, locked.error());
        return EXIT_FAILURE;
    }
    return Daemon(options.directory, options.policy_file).run();
}

int main(int argc, char** argv) {
    CLI::App app{"The sidecar of rdmaquota: watches, tells, and changes limits as the policy says", "rdmaquotad"};
    const char* directory = ::secure_getenv("RDMAQUOTA_DIR");
    Options options{directory != nullptr && *directory != '\0' ? directory : system_directory, default_policy_file()};
    app.set_version_flag("--version", std::string("rdmaquotad ") + config::version);
    app.add_option("--dir", options.directory, "Directory of the running policy and ledgers")->type_name("DIR");
    app.add_option("--policy", options.policy_file, "Policy file that SIGHUP and 'reload' put in force")
        ->type_name("FILE");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
        log(Priority::error, std::string(error.what()) + "; see 'rdmaquotad --help'");
        return 2;
    }
    return run(options);
}

}  // namespace
}  // namespace rdmaquota

int main(int argc, char** argv) {
    try {
        return rdmaquota::main(argc, argv);
    } catch (const std::exception& error) {
        rdmaquota::log(rdmaquota::Priority::error, error.what());
        return EXIT_FAILURE;
    }
}
