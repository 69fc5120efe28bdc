// rdmaquota reload: the policy file becomes the running policy.
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/core.h>

#include "shm/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy_segment.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/config.hpp"

namespace rdmaquota {
namespace {

Result<void> make_directory(const std::string& path) {
    if (::mkdir(path.c_str(), 0755) == 0) {
        if (::chmod(path.c_str(), 0755) == 0) return {};  // whatever the umask left of it
    } else if (errno == EEXIST) {
        return {};
    }
    return Error{
        fmt::format("cannot create {}: {}{}", path, std::strerror(errno), ::geteuid() == 0 ? "" : "; run as root")};
}

int no_policy_file(const std::string& file) {
    return failed(fmt::format("there is no policy file {}: copy {} there, or name another: rdmaquota reload FILE", file,
                              config::example_policy));
}

// Everything that can fail comes before the publication, which replaces the policy in one step.
int reload(const std::string& file, const Session& session) {
    if (::access(file.c_str(), F_OK) != 0 && errno == ENOENT) return no_policy_file(file);
    const auto policy = load_policy(file);
    if (!policy) return failed(policy.error());
    if (const auto made = make_directory(session.directory); !made) return failed(made.error());
    const auto aside = Ledger::set_aside_unusable(ledger_path(session.directory));
    if (!aside) return failed(aside.error());
    if (!aside->empty()) fmt::print("the ledger could not be used; it was moved to {} and a new one made\n", *aside);
    if (const auto made = Ledger::create(ledger_path(session.directory), true); !made) return failed(made.error());
    const auto published = PolicySegment::publish(policy_path(session.directory), policy.value());
    if (!published) return failed(published.error());
    fmt::print("{} is in force, mode {}\n", file, name(policy.value().mode));
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
