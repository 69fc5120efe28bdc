// rdmaquota reload: the policy file becomes the running policy.
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

int reload(const std::string& file, const Session& session) {
    const auto done = reload_policy(file, session.directory);
    if (!done) return failed(done.error());
    if (!done->ledger_moved_to.empty())
        fmt::print("the ledger could not be used; it was moved to {} and a new one made\n", done->ledger_moved_to);
    fmt::print("{} is in force, mode {}\n", file, name(done->mode));
    return status_done;
}

}  // namespace

void add_reload(CLI::App& app, Session& session) {
    const auto file = std::make_shared<std::string>(default_policy_file());
    auto* command = app.add_subcommand("reload", "Put the policy file in force, at once and for running programs too");
    command->add_option("FILE", *file, "Policy file instead of " + *file)->type_name("");
    command->callback([file, &session] { session.status = reload(*file, session); });
}

}  // namespace rdmaquota
