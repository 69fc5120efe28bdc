// rdmaquota: quotas on RDMA objects, for people and scripts.
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "shm/paths.hpp"
#include "tools/common/config.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/complete.hpp"

namespace rdmaquota {
namespace {

std::string initial_directory() {
    const char* directory = ::secure_getenv("RDMAQUOTA_DIR");
    return directory != nullptr && *directory != '\0' ? directory : system_directory;
}

void describe(CommandLine& line, Session& session) {
    auto top_level = line.top_level();
    top_level.option("--dir", "DIR", session.directory,
                     "Directory of the running policy and ledgers instead of " + session.directory);
    top_level.footer(
        "Each command has --help (or: rdmaquota help COMMAND) and a man page, such as rdmaquota-run(1); the policy file is\n"
        "rdmaquota.toml(5).");
    add_init(line, session);
    add_run(line);
    add_show(line, session);
    add_set(line, session);
    add_unset(line, session);
    add_which(line, session);
    add_explain(line, session);
    add_suggest(line, session);
    add_tenant(line, session);
    add_cdi(line, session);
    add_slurm(line, session);
    add_top(line, session);
    add_events(line, session);
    add_check(line);
    add_reload(line, session);
    add_repair(line, session);
    add_guard(line, session);
    add_web(line, session);
    add_doctor(line, session);
    add_adopt(line, session);
    add_cluster(line);
    add_completion(line);
}

// A full disk or a closed pipe shows here at the latest.
int finish(int status) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    return status == status_done ? failed("cannot write the output") : status;
}

int main(const std::vector<std::string>& arguments) {
    Session session{initial_directory()};
    CommandLine line("rdmaquota", config::version, "Quotas on RDMA objects: see and change what programs may use");
    describe(line, session);
    if (!arguments.empty() && arguments.front() == "__complete")
        return complete(line, {arguments.begin() + 1, arguments.end()}, session.directory);
    const auto status = line.run(arguments);
    return finish(status ? *status : wrong_usage(status.error()));
}

}  // namespace
}  // namespace rdmaquota

int main(int argc, char** argv) {
    try {
        return rdmaquota::main({argv + 1, argv + argc});
    } catch (const std::exception& error) {
        return rdmaquota::failed(error.what());
    }
}
