// rdmaquota adopt: registers the provider with a libibverbs that does not read the node's configuration, and finds these.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include <fmt/core.h>
#include <fmt/ranges.h>

#include "tools/common/devices.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/doctor/guard.hpp"
#include "tools/rdmaquota/doctor/verbs_files.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string prefix;
    std::vector<std::string> scan;
    bool remove = false;
};

// What holds the programs that are not held in themselves.
std::string otherwise(bool guarded) { return guarded ? "only the guard limits its programs" : "nothing limits its programs"; }

std::string verdict(const VerbsFile& file, bool guarded) {
    if (const auto by = registered_by(file); !by.empty()) {
        if (!all_have_public_libraries() || !has_public_library(file)) return "held, by " + by;
        return fmt::format("held, by {}; but of programs that load libmlx5 or its like from there themselves: {}", by, otherwise(guarded));
    }
    const auto prefix = prefix_of(file);
    if (!prefix.empty()) return fmt::format("not held: {}; run 'rdmaquota adopt {}'", otherwise(guarded), prefix);
    const auto directory = std::filesystem::path(file.path).parent_path().string();
    return fmt::format("cannot be adopted, {}: {}, but 'rdmaquota run' can", obstacle(file, directory), otherwise(guarded));
}

int scan(const std::vector<std::string>& directories, const std::string& quota_directory) {
    const bool guarded = guard_refuses(quota_directory);
    const auto files = find_verbs_files(directories);
    if (files.empty()) fmt::print("found no libibverbs below {}\n", printable(fmt::format("{}", fmt::join(directories, ", "))));
    for (const auto& file : files)
        fmt::print("{} (private ABI {}): {}\n", printable(file.path), file.pabi, printable(verdict(file, guarded)));
    return status_done;
}

int adopt(const Options& options) {
    std::error_code error;
    const auto prefix = std::filesystem::canonical(options.prefix, error).string();
    if (error) return failed(fmt::format("{}: {}", options.prefix, error.message()));
    const auto files = find_verbs_files({prefix});
    if (files.empty()) return failed(fmt::format("found no libibverbs below {}", prefix));
    for (const auto& file : files) {
        const auto why = obstacle(file, prefix);
        if (const auto by = registered_by(file); !why.empty() && !by.empty()) {
            fmt::print("{} (private ABI {}): held already, by {}\n", printable(file.path), file.pabi, printable(by));
            continue;
        }
        if (!why.empty())
            return failed(fmt::format("cannot adopt {}: {}; see 'rdmaquota adopt --scan {}'", file.path, why, prefix));
        if (const auto done = options.remove ? unregister_provider(file) : register_provider(file); !done) return failed(done.error());
        fmt::print("{} (private ABI {}): programs that start from now on {} rdmaquota\n", printable(file.path), file.pabi,
                   options.remove ? "do not load" : "load");
    }
    return status_done;
}

int act(const Options& options, const Session& session) {
    if (options.prefix.empty() == options.scan.empty()) return wrong_usage("adopt needs a PREFIX, or --scan with directories");
    if (!options.scan.empty()) return options.remove ? wrong_usage("--scan and --remove exclude each other") : scan(options.scan, session.directory);
    return adopt(options);
}

}  // namespace

void add_adopt(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("adopt", "Hold the programs of a Spack, conda or EasyBuild prefix that has a libibverbs of its own");
    command.optional_word("PREFIX", options->prefix, "Register the provider with each libibverbs below this directory");
    command.flag("--remove", options->remove, "Take the registration out again");
    command.list("--scan", "DIR", options->scan, "List each libibverbs below these directories, and what holds its programs");
    command.footer("Example: rdmaquota adopt --scan /opt,/home && rdmaquota adopt /opt/spack/view");
    command.action([options, &session] { return act(*options, session); });
}

}  // namespace rdmaquota
