// rdmaquota reload: puts the policy file in force.
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "tools/common/shares/divide.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string file = default_policy_file();
    bool boot = false;
};

int reload(const Options& options, const Session& session) {
    const auto& file = options.file;
    const auto done = reload_policy(file, session.directory, options.boot ? When::at_boot : When::now);
    if (!done) return failed(done.error());
    if (const auto divided = divide_shares(session.directory); !divided) return failed(divided.error());
    for (const auto& warning : done->warnings) warn("warning: " + warning);
    if (!done->ledger_moved_to.empty())
        fmt::print("the ledger could not be used; it was moved to {} and a new one made\n", done->ledger_moved_to);
    fmt::print("{} is in force, mode {}\n", file, name(done->mode));
    return status_done;
}

}  // namespace

void add_reload(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("reload", "Put the policy file in force, at once and for running programs too");
    command.optional_word("FILE", options->file, "Policy file instead of " + options->file);
    command.flag("--boot", options->boot, "Warn of a cgroup that there is not yet, instead of failing");
    command.action([options, &session] { return reload(*options, session); });
}

}  // namespace rdmaquota
