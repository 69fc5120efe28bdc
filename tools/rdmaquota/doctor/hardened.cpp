#include "tools/rdmaquota/doctor/hardened.hpp"

#include <fcntl.h>
#include <grp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>

#include <fmt/core.h>

#include "policy/pattern.hpp"
#include "shm/paths.hpp"
#include "shm/policy/node_policy.hpp"
#include "shm/same_file.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/process/probe.hpp"
#include "tools/common/tenants/ledger_mount.hpp"
#include "tools/common/tenants/subject.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/doctor/guard.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t most_programs = 16;  // that are named
constexpr unsigned patience_s = 2;

void examine_second(Findings& findings, const std::string& root) {
    const auto first = root + system_directory, second = root + second_directory;
    if (same_file(first, second))
        findings.push_back({Level::ok, "hardened units", second + " is the quota directory, too"});
    else if (is_mount_point(first))
        findings.push_back(
            {Level::warning, "hardened units",
             fmt::format("{} is not the quota directory: programs of units with ProtectSystem=strict and the like "
                         "are not held; run 'rdmaquota reload' as root (Linux 5.12 or newer)",
                         second)});
}

void examine_selinux(Findings& findings, const std::string& root) {
    if (file_text(root + "/sys/fs/selinux/enforce").starts_with('1'))
        findings.push_back(
            {Level::warning, "SELinux",
             fmt::format("enforcing: it may refuse {} to confined programs, which are not held then; 'ausearch -m avc "
                         "-ts boot' shows what it refused, docs/hardened.md has the rules to add",
                         system_directory)});
}

// `guarded`: the guard holds it all the same.
void examine_program(Findings& findings, const Json& bypass, const std::string& directory, bool guarded) {
    const auto pid = bypass.value("pid", 0);
    const auto unit = bypass.value("unit", "");
    const auto begin = findings.size();
    examine_reach(findings, pid, directory);
    if (findings.size() == begin)
        findings.push_back(
            {Level::problem, "", fmt::format("nothing of it is counted: 'rdmaquota doctor --pid {}' says why", pid)});
    for (auto i = begin; i < findings.size(); ++i) {
        findings[i].subject =
            fmt::format("process {} ({}){}", pid, bypass.value("comm", ""), unit.empty() ? "" : " in unit " + unit);
        if (guarded) findings[i] = {Level::warning, findings[i].subject, "the guard alone holds it: " + findings[i].text};
    }
}

void examine_uncounted(Findings& findings, const std::string& directory) try {
    const auto answer = ask_sidecar(directory, Json{{"request", "status"}});
    if (!answer) return;
    std::size_t shown = 0;
    const bool guarded = guard_refuses(directory);
    for (const auto& bypass : answer->at("kernel").at("bypasses"))
        if (!bypass.value("counted", true) && ++shown <= most_programs) examine_program(findings, bypass, directory, guarded);
    if (shown > most_programs)
        findings.push_back(
            {guarded ? Level::warning : Level::problem, "processes", fmt::format("{} more are not counted", shown - most_programs)});
} catch (const Json::exception&) {  // a sidecar of another version
}

// --- one process ----------------------------------------------------------------------------------------

bool become(const Subject& subject) {
    return subject.user && subject.group && ::setgroups(subject.groups.size(), subject.groups.data()) == 0 &&
           ::setresgid(*subject.group, *subject.group, *subject.group) == 0 &&
           (*subject.user == 0 || ::setresuid(*subject.user, *subject.user, *subject.user) == 0);
}

// The errno with which the process would fail to write its ledger at each place, 0 for none; none where that is not
// known. In a child, since a file system in the process's mounts may let it wait for ever.
std::vector<int> errors_at(pid_t pid, const Subject& subject, const std::vector<std::string>& places) {
    const Probe probe([&]() -> std::string {
        ::alarm(patience_s);
        const int root = ::open(fmt::format("/proc/{}/root", pid).c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
        std::string answer;
        if (root < 0 || !become(subject)) return answer;
        for (const auto& place : places)
            answer +=
                fmt::format("{} ", ::faccessat(root, place.c_str() + 1, R_OK | W_OK, AT_EACCESS) == 0 ? 0 : errno);
        return answer;
    });
    std::vector<int> errors;
    const auto& answer = probe.answer();
    for (std::size_t at = 0; at < answer.size(); at = answer.find(' ', at) + 1)
        std::from_chars(answer.data() + at, answer.data() + answer.size(), errors.emplace_back());
    return errors;
}

std::string tenant_of(const NodePolicy& policy, const Subject& subject, const std::string& directory) {
    auto tenant = policy.find(subject).tenant;
    const bool is_there = ::access(limits_path(here_path(directory, tenant)).c_str(), F_OK) == 0;
    return is_there ? tenant : std::string(default_tenant);
}

Finding rights_finding(const std::string& tenant, const Subject& subject) {
    return {
        Level::problem, "members",
        fmt::format(
            "user {} is not a member of its tenant {}, whose ledger it cannot write: add it to 'members' of the match; "
            "a unit with DynamicUser=yes needs members = [\"*\"]",
            subject.user.value_or(0), tenant)};
}

Finding mounts_finding(const char* what, const Subject& subject) {
    const auto drop_in = drop_in_for(unit_of(subject.cgroup));
    return {
        Level::problem, "mounts",
        fmt::format(
            "its mounts {} both {} and {}, so nothing of it is counted: {}", what, system_directory, second_directory,
            drop_in.empty() ? fmt::format("bind {} into its sandbox, writable", system_directory) : "run: " + drop_in)};
}

// By AppArmor ("profile (enforce)") or an enforcing SELinux ("system_u:system_r:mysqld_t:s0").
void examine_confinement(Findings& findings, pid_t pid) {
    auto label = file_text(fmt::format("/proc/{}/attr/current", pid));
    label = label.substr(0, label.find_first_of(std::string("\n\0", 2)));
    const bool by_selinux =
        file_text("/sys/fs/selinux/enforce").starts_with('1') && label.find(":unconfined_t:") == label.npos;
    if (!label.ends_with("(enforce)") && !by_selinux) return;
    findings.push_back(
        {Level::problem, "confinement",
         fmt::format("it runs as {}, which may forbid the quota directory: docs/hardened.md has the rules to add",
                     label)});
}

}  // namespace

std::string drop_in_for(std::string_view unit) {
    // A user's manager hands its mounts to all of the user's units; a name that only root can have chosen may be
    // anything.
    if (!unit.ends_with(".service") || unit.starts_with("user@") || unit.find_first_of("'/") != unit.npos) return {};
    const auto directory = fmt::format("/etc/systemd/system/{}.d", unit);
    return fmt::format(
        "mkdir -p '{}' && printf '[Service]\\nBindPaths=-{}\\n' > '{}/rdmaquota.conf' && systemctl daemon-reload && "
        "systemctl restart '{}'",
        directory, system_directory, directory, unit);
}

void examine_hardening(Findings& findings, const std::string& directory, const std::string& root) {
    if (directory != system_directory) return;
    examine_second(findings, root);
    examine_selinux(findings, root);
    examine_uncounted(findings, directory);
}

void examine_reach(Findings& findings, pid_t pid, const std::string& directory) {
    const auto subject = ProcessSubject::of(pid);
    const auto policy = NodePolicy::read(node_policy_path(directory));
    if (directory != system_directory || !subject || !policy) return;
    const auto who = subject->view();
    const auto tenant = tenant_of(*policy, who, directory);
    std::vector<std::string> places;
    for (const auto* place : {system_directory, second_directory})
        places.push_back(data_path(ledger_path(here_path(place, tenant))));
    const auto errors = errors_at(pid, who, places);
    const auto has = [&](int error) { return std::find(errors.begin(), errors.end(), error) != errors.end(); };
    if (errors.empty() || has(0))
        examine_confinement(findings, pid);
    else if (has(EACCES))
        findings.push_back(rights_finding(tenant, who));
    else
        findings.push_back(mounts_finding(has(EROFS) ? "make read-only" : "hide", who));
}

}  // namespace rdmaquota
