// What the doctor examines where Slurm is.
#include "tools/rdmaquota/doctor/slurm.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <filesystem>
#include <optional>
#include <sstream>

#include <fmt/core.h>

#include "policy/slurm.hpp"
#include "tools/common/config.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/slurm_jobs.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/slurm/slurm_conf.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

constexpr const char* subject = "Slurm";
constexpr const char* plugin_name = "spank_rdmaquota.so";

void say(Findings& findings, Level level, std::string text) { findings.push_back({level, subject, std::move(text)}); }

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// By opening it: access(2) knows nothing of what /proc refuses.
bool may_not_read(const std::string& path) {
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno == EACCES || errno == EPERM;
    ::close(file);
    return false;
}

std::string plugin_path() { return fmt::format("{}/{}", config::slurm_plugin_dir, plugin_name); }

template <class Number>
std::optional<Number> number_in(std::string_view text) {
    Number number{};
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    return status == std::errc{} && end == text.data() + text.size() ? std::optional(number) : std::nullopt;
}

bool is_slurmd(int pid) {
    const auto text = [pid](const char* name) { return file_text(fmt::format("/proc/{}/{}", pid, name)); };
    const auto comm = text("comm");
    return comm == "slurmd\n" && is_roots_slurmd(comm, text("status"), text("cgroup"));
}

// The first slurmd, of several where one node plays many.
std::optional<int> slurmd() {
    for (const auto& name : directory_names("/proc"))
        if (const auto pid = number_in<int>(name))
            if (is_slurmd(*pid)) return pid;
    return std::nullopt;
}

// SLURM_CONF of slurmd, what slurmctld sent to it, or the usual place.
std::string slurm_conf(int pid) {
    std::istringstream variables(file_text(fmt::format("/proc/{}/environ", pid)));
    for (std::string variable; std::getline(variables, variable, '\0');)
        if (variable.starts_with("SLURM_CONF=")) return variable.substr(11);
    for (const auto* path : {"/run/slurm/conf/slurm.conf", "/run/slurmd/conf/slurm.conf"})
        if (exists(path)) return path;
    return "/etc/slurm/slurm.conf";
}

void examine_cgroups(Findings& findings) {
    if (!exists("/sys/fs/cgroup/cgroup.controllers"))
        say(findings, Level::problem,
            "/sys/fs/cgroup has cgroup version 1, by which jobs cannot be told apart, so their tenants hold nobody: start "
            "the node with systemd.unified_cgroup_hierarchy=1");
}

// --- jobs ------------------------------------------------------------------------------------------

void add_jobs(const fs::path& scope, JobCgroups& found) {
    std::error_code error;
    for (const auto& name : directory_names(scope)) {
        if (!fs::is_directory(scope / name, error) || name == "system") continue;  // slurmstepd's own
        const auto number = name.starts_with("job_") ? number_in<std::uint32_t>(std::string_view(name).substr(4)) : std::nullopt;
        if (number) found.jobs.push_back(*number);
        else found.unnumbered = name;
    }
}

std::optional<std::uint32_t> job_of(const std::string& tenant) {
    const auto dash = tenant.rfind("/job-");
    return tenant.starts_with("slurm/") && dash != tenant.npos
               ? number_in<std::uint32_t>(std::string_view(tenant).substr(dash + 5))
               : std::nullopt;
}

std::vector<std::uint32_t> jobs_with_tenants(const std::string& directory) {
    std::vector<std::uint32_t> jobs;
    for (const auto& place : tenant_places(directory))
        if (const auto job = job_of(place.key)) jobs.push_back(*job);
    return jobs;
}

// How many of `jobs` are not among `others`, and the first of these.
struct Missing {
    std::size_t count = 0;
    std::uint32_t first = 0;
};
Missing missing(const std::vector<std::uint32_t>& jobs, const std::vector<std::uint32_t>& others) {
    Missing result;
    for (const auto job : jobs)
        if (std::find(others.begin(), others.end(), job) == others.end() && result.count++ == 0) result.first = job;
    return result;
}

void examine_jobs(Findings& findings, const std::string& directory) {
    const auto [running, unnumbered] = job_cgroups();
    const auto known = jobs_with_tenants(directory);
    if (!unnumbered.empty())
        return say(findings, Level::problem,
                   fmt::format("Slurm names jobs' cgroups by another name than their number ({}), so their tenants hold nobody: "
                               "put CgroupJobIdPaths=yes into cgroup.conf, and restart slurmd",
                               unnumbered));
    if (const auto without = missing(running, known); without.count != 0)
        say(findings, Level::problem,
            fmt::format(
                "{} running jobs have no tenant, job {} for one: they began without the plugin or without [slurm], or "
                "'rdmaquota events' says why",
                without.count, without.first));
    if (const auto ended = missing(known, running); ended.count != 0)
        say(findings, Level::warning,
            fmt::format("{} jobs have a tenant and no processes, job {} for one: they begin just now, or slurmd was "
                        "not there when "
                        "they ended: then 'rdmaquota slurm end {}'",
                        ended.count, ended.first, ended.first));
    say(findings, Level::ok, fmt::format("{} jobs have a tenant", known.size()));
    if (const auto events = job_events(directory); !events.empty())
        say(findings, Level::warning,
            fmt::format("{} remarks about jobs in 'rdmaquota events', the last: {}", events.size(),
                        events.back().value("text", "")));
}

}  // namespace

// All four user ids: a program that is set-user-ID root has some of its user's. A user's own system manager can have a
// slurmd.service too.
bool is_roots_slurmd(std::string_view comm, std::string_view status, std::string_view cgroup) {
    if (comm != "slurmd\n" || status.find("\nUid:\t0\t0\t0\t0\n") == status.npos) return false;
    std::istringstream lines{std::string(cgroup)};
    for (std::string line; std::getline(lines, line);) {
        const auto path = line.find(":/");
        if (path == line.npos) continue;
        std::istringstream parts(line.substr(path + 2));
        for (std::string part; std::getline(parts, part, '/') && part != "user.slice";)
            if (part == "slurmd.service" || (part.starts_with("slurmd@") && part.ends_with(".service"))) return true;
    }
    return false;
}

void examine_slurmd(Findings& findings, int pid) {
    if (may_not_read(fmt::format("/proc/{}/maps", pid)))
        return say(findings, Level::warning,
                   fmt::format("only root sees whether slurmd (pid {}) has loaded the plugin, and which slurm.conf it reads", pid));
    const auto maps = file_text(fmt::format("/proc/{}/maps", pid));
    if (maps.find(fmt::format("{} (deleted)", plugin_name)) != std::string::npos)
        say(findings, Level::warning,
            fmt::format("slurmd (pid {}) has loaded the plugin of an earlier version: restart slurmd; jobs go on", pid));
    else if (maps.find(plugin_name) == std::string::npos)
        say(findings, Level::problem,
            fmt::format("slurmd (pid {}) has not loaded the plugin, so jobs get no tenant: see that plugstack.conf has "
                        "'optional {}', then restart slurmd; jobs go on",
                        pid, plugin_path()));
    else
        say(findings, Level::ok, fmt::format("slurmd (pid {}) has loaded the plugin", pid));
    const auto conf = slurm_conf(pid);
    if (const auto tracking = slurms_tracking(conf); !tracking.empty() && tracking != "proctrack/cgroup")
        say(findings, Level::problem,
            fmt::format("{} has ProctrackType={}, so jobs have no cgroup to know them by; set proctrack/cgroup", conf,
                        tracking));
}

JobCgroups job_cgroups(const std::string& root) {
    JobCgroups found;
    for (const auto& slice : directory_names(root))
        if (slice.ends_with(".slice"))
            for (const auto& name : directory_names(fmt::format("{}/{}", root, slice)))
                if (name.ends_with("slurmstepd.scope")) add_jobs(fs::path(root) / slice / name, found);
    return found;
}

void examine_slurm(Findings& findings, const std::string& directory) {
    const auto policy = running_slurm(directory);
    const auto pid = slurmd();
    const bool wanted = !policy || policy.value();
    const bool installed = exists(plugin_path());
    if (!wanted && !installed) return;
    if (!policy) return say(findings, Level::problem, policy.error());
    if (!wanted)
        return say(findings, Level::ok, "the plugin is there; jobs get no tenant, since the policy has no [slurm]");
    if (!installed)
        return say(findings, Level::problem,
                   fmt::format("the policy has [slurm], but {} is missing: install rdmaquota-slurm", plugin_path()));
    if (!pid) return say(findings, Level::warning, "the policy has [slurm], but no slurmd runs here");
    examine_slurmd(findings, *pid);
    examine_cgroups(findings);
    examine_jobs(findings, directory);
}

}  // namespace rdmaquota
