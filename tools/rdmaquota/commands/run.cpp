// rdmaquota run: runs a program and its children under limits of their own.
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include <fmt/core.h>

#include "tools/common/text/directory_names.hpp"
#include "tools/rdmaquota/commands/child.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/config.hpp"
#include "tools/common/devices.hpp"
#include "tools/rdmaquota/commands/private_directory.hpp"
#include "tools/rdmaquota/commands/unheld.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

constexpr int status_not_executable = 126;
constexpr int status_not_found = 127;

struct Options {
    std::vector<std::string> process_limits;
    std::vector<std::string> tenant_limits;
    std::string mode;
    std::string deny_errno;
    bool clamp_device_attr = false;
    std::vector<std::string> program;
};

Result<TenantLimits> limits_of(const Options& options) {
    TenantLimits limits;
    if (const auto added = add_limits(limits.limits[index(Scope::process)], options.process_limits); !added) return Error{added.error()};
    if (const auto added = add_limits(limits.limits[index(Scope::tenant)], options.tenant_limits); !added) return Error{added.error()};
    if (!options.mode.empty()) {
        const auto mode = parse_mode(options.mode);
        if (!mode) return Error{mode.error()};
        limits.mode = mode.value();
    }
    if (!options.deny_errno.empty()) {
        const auto number = parse_deny_errno(options.deny_errno);
        if (!number) return Error{number.error()};
        limits.deny_errno = number.value();
    }
    limits.clamp_device_attr = options.clamp_device_attr;
    return limits;
}

// Whether a file BASE-rdmavNN.so exists.
bool has_provider(const fs::path& base) {
    const auto names = directory_names(base.parent_path());
    return std::any_of(names.begin(), names.end(),
                       [&](const std::string& name) { return name.starts_with(base.filename().string() + "-rdmav"); });
}

// The name by which libibverbs loads the provider without a .driver file: it appends "-rdmavNN.so". On a node that has an
// installation it is the installed one, which libibverbs then loads once, by both names. This binary is in build/tools/rdmaquota or
// in the installation's bin directory.
Result<std::string> provider_name() {
    std::error_code error;
    const auto self = fs::read_symlink("/proc/self/exe", error);
    const auto built = (self.parent_path() / "../../provider/librdmaquota").lexically_normal();
    const auto installed = fs::path(config::provider_dir) / "librdmaquota";
    const bool registered = fs::exists(fs::path(config::driver_dir) / "rdmaquota.driver");
    for (const auto& candidate : {registered ? installed : built, registered ? built : installed}) {
        if (!has_provider(candidate)) continue;
        if (candidate.string().find_first_of(":;") == std::string::npos) return candidate.string();
        return Error{fmt::format("libibverbs cannot load {}: its path has a ':' or ';'", candidate.string())};
    }
    return Error{fmt::format("found no provider: no {}-rdmav*.so and no {}-rdmav*.so; build or install rdmaquota first",
                             built.string(), installed.string())};
}

// Where a program has registered the providers of all devices, its libibverbs reads neither RDMAV_DRIVERS nor a configuration, and the
// shadow libraries do not help a program that is linked to a libmlx5 of another prefix. So the loader brings the provider there. It does
// not elsewhere: programs that were built with AddressSanitizer do not start with a preloaded library.
void preload(const std::string& provider) {
    if (!all_have_public_libraries()) return;
    const char* others = std::getenv("LD_PRELOAD");
    ::setenv("LD_PRELOAD", fmt::format("{}.so{}{}", provider, others == nullptr ? "" : ":", others == nullptr ? "" : others).c_str(), 1);
}

// A libibverbs of another prefix does not read the node's .driver files, so that the provider is always named in the environment.
Result<void> set_environment(const std::string& directory) {
    ::setenv("RDMAQUOTA_DIR", directory.c_str(), 1);
    const auto provider = provider_name();
    if (!provider) return Error{provider.error()};
    preload(*provider);
    // libibverbs ignores IBV_DRIVERS when RDMAV_DRIVERS is set.
    const char* others = std::getenv("RDMAV_DRIVERS");
    if (others == nullptr) others = std::getenv("IBV_DRIVERS");
    const bool alone = others == nullptr || *others == '\0';
    ::setenv("RDMAV_DRIVERS", (alone ? provider.value() : provider.value() + ":" + others).c_str(), 1);
    return {};
}

int tell_start_failure(const std::string& program, int error) {
    failed(fmt::format("cannot run '{}': {}", program, std::strerror(error)));
    return error == ENOENT ? status_not_found : status_not_executable;
}

void clean_up(const std::string& directory, bool descendants_live) {
    if (!descendants_live && !has_owners(directory)) return remove_private_directory(directory);
    warn(fmt::format("processes of this run live on under its limits; remove {} when they have ended", directory));
}

// True when a program of the run was not held; says which.
bool tell_unheld(UnheldProcesses& unheld) {
    const auto lines = unheld.conclude();
    for (const auto& line : lines)
        warn(line + ", which did not load the provider: the limits of this run did not hold for it; see LIMITS in rdmaquota-run(1)");
    return !lines.empty();
}

int run(const Options& options) {
    if (options.program.empty())
        return wrong_usage("no program is given; write it after --, see 'rdmaquota run --help'");
    const auto limits = limits_of(options);
    if (!limits) return wrong_usage(limits.error());
    const auto directory = make_private_directory(*limits);
    if (!directory) return failed(directory.error());
    if (const auto set = set_environment(*directory); !set) {
        remove_private_directory(*directory);
        return failed(set.error());
    }
    UnheldProcesses unheld(*directory);
    const auto end = run_child(options.program, {unheld.descriptor(), [&unheld] { return unheld.look(); }});
    const bool all_held = !tell_unheld(unheld);
    clean_up(*directory, end && end->descendants_live);
    if (!end) return failed(end.error());
    if (end->exec_error != 0) return tell_start_failure(options.program.front(), end->exec_error);
    if (end->signal != 0) die_by(end->signal);
    return end->status == status_done && !all_held ? status_failed : end->status;
}

}  // namespace

void add_run(CommandLine& line) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("run", "Run a program under limits of its own; needs no root, no installation");
    command.list("--limit", "RESOURCE=N", options->process_limits,
                 "Limit for each process on each device; may be repeated");
    command.list("--tenant-limit", "RESOURCE=N", options->tenant_limits,
                 "Limit for all its processes together on each device");
    command.option("--mode", "MODE", options->mode, "enforce (default), audit or off");
    command.option("--deny-errno", "ERRNO", options->deny_errno,
                   "What a denied call reports: EDQUOT (default), EAGAIN, ENOMEM");
    command.flag("--clamp-device-attr", options->clamp_device_attr,
                 "Let device attributes tell no more than the quota leaves");
    command.program(options->program);
    command.footer("Resources: " + resource_names() + ".\nExample: rdmaquota run --limit qp=2 -- ibv_rc_pingpong");
    command.action([options] { return run(*options); });
}

}  // namespace rdmaquota
