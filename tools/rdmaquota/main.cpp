// rdmaquota: quotas on RDMA objects, for people and scripts.
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/core.h>

#include "policy/file/did_you_mean.hpp"
#include "shm/paths.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/complete.hpp"
#include "tools/common/config.hpp"
#include "tools/rdmaquota/help.hpp"
#include "tools/common/terminal.hpp"

namespace rdmaquota {
namespace {

std::string initial_directory() {
    const char* directory = ::secure_getenv("RDMAQUOTA_DIR");
    return directory != nullptr && *directory != '\0' ? directory : system_directory;
}

void describe(CLI::App& app, Session& session) {
    app.formatter(std::make_shared<HelpFormatter>());
    app.set_version_flag("--version", std::string("rdmaquota ") + config::version);
    app.add_option("--dir", session.directory,
                   "Directory of the running policy and ledgers instead of " + session.directory)
        ->type_name("DIR");
    app.require_subcommand(1);
    app.fallthrough();
    add_run(app, session);
    add_show(app, session);
    add_set(app, session);
    add_top(app, session);
    add_events(app, session);
    add_check(app, session);
    add_reload(app, session);
    add_repair(app, session);
    add_doctor(app, session);
    add_completion(app, session);
    app.footer(
        "Each command has --help and a man page, such as rdmaquota-run(1); the policy file is rdmaquota.toml(5).");
}

// What follows -- belongs to the program that `run` starts; CLI11 must not see it, since it would
// take arguments such as "[a,b]" apart.
void split_off_program(std::vector<std::string>& arguments, Session& session) {
    const auto dashes = std::find(arguments.begin(), arguments.end(), "--");
    if (dashes == arguments.end() || std::find(arguments.begin(), dashes, "run") == dashes) return;
    session.program.assign(dashes + 1, arguments.end());
    arguments.erase(dashes, arguments.end());
}

int unknown_command(const std::vector<std::string>& arguments) {
    static constexpr std::array<std::string_view, 10> known{"run",    "show",   "top",    "set",    "events",
                                                            "check",  "reload", "repair", "doctor", "completion"};
    for (const auto& word : arguments)
        if (!word.starts_with('-'))
            return wrong_usage(
                fmt::format("unknown command '{}'{}; see 'rdmaquota --help'", word, did_you_mean(word, known)));
    return wrong_usage("no command is given; see 'rdmaquota --help'");
}

// CLI11 has exit codes of its own, and several lines for one error.
int parse_failed(const CLI::App& app, const CLI::ParseError& error, const std::vector<std::string>& arguments) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) return app.exit(error);
    const auto chosen = app.get_subcommands();
    if (chosen.empty() && error.get_exit_code() == static_cast<int>(CLI::ExitCodes::RequiredError))
        return unknown_command(arguments);
    const auto name = chosen.empty() ? "rdmaquota" : "rdmaquota " + chosen.front()->get_name();
    return wrong_usage(fmt::format("{}; see '{} --help'", error.what(), name));
}

// Full disks and closed pipes show here at the latest.
int finish(int status) {
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return status;
    return status == status_done ? failed("cannot write the output") : status;
}

int main(int argc, char** argv) {
    CLI::App app{"Quotas on RDMA objects: see and change what programs may use", "rdmaquota"};
    Session session;
    session.directory = initial_directory();
    describe(app, session);
    std::vector<std::string> arguments(argv + 1, argv + argc);
    if (!arguments.empty() && arguments.front() == "__complete")
        return complete(app, {arguments.begin() + 1, arguments.end()});
    split_off_program(arguments, session);
    try {
        app.parse(std::vector<std::string>(arguments.rbegin(), arguments.rend()));  // as CLI11 wants them
    } catch (const CLI::ParseError& error) {
        return finish(parse_failed(app, error, arguments));
    }
    return finish(session.status);
}

}  // namespace
}  // namespace rdmaquota

int main(int argc, char** argv) {
    try {
        return rdmaquota::main(argc, argv);
    } catch (const std::exception& error) {
        return rdmaquota::failed(error.what());
    }
}
