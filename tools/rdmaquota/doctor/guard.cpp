// The guard: is it on, and would this kernel take it.
#include <string>

#include <fmt/core.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "shm/paths.hpp"
#include "shm/policy/node_policy.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/guard/guard_pins.hpp"
#include "tools/common/guard/lockdown.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/doctor/findings.hpp"
#include "tools/rdmaquota/doctor/guard.hpp"

namespace rdmaquota {
namespace {

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// What this kernel lacks for it, or "".
std::string lacking() {
    utsname system{};
    uname(&system);
    if (auto why = too_old_for_guard(system.machine, system.release); !why.empty()) return why;
    if (!exists("/sys/kernel/btf/vmlinux")) return "the kernel has no type information (CONFIG_DEBUG_INFO_BTF)";
    if (is_locked_down()) return std::string(locked_down);
    constexpr ino_t first_pid_namespace = 0xEFFFFFFC;
    struct stat space {};
    if (stat("/proc/self/ns/pid", &space) == 0 && space.st_ino != first_pid_namespace)
        return "this is a pid namespace of its own";
    return "";
}

Finding kept() {
    return {Level::warning, "guard", "kept by the kernel with the limits that it had; no sidecar leads it"};
}

Finding of_state(const std::string& state, const std::vector<std::string>& problems) {
    if (state == "deny") return {Level::ok, "guard", "the kernel refuses what exceeds a limit"};
    if (state == "starting") return {Level::ok, "guard", "starting: it refuses nothing before its limits are there"};
    if (state == "watch")
        return {Level::ok, "guard", "the kernel counts what exceeds a limit, and refuses nothing (guard = \"watch\")"};
    if (state == "kept") return kept();
    auto why = lacking();
    for (const auto& problem : problems) why += (why.empty() ? "" : "; ") + problem;
    return {Level::problem, "guard",
            "the policy asks for it and the kernel has none; " +
                (why.empty() ? std::string("it was taken out; 'rdmaquota reload' brings it back") : why)};
}

void add_answer(Findings& findings, const Json& guard) {
    const auto problems = guard.value("problems", std::vector<std::string>());
    findings.push_back(of_state(guard.value("state", "off"), problems));
    if (findings.back().level != Level::problem)
        for (const auto& problem : problems) findings.push_back({Level::warning, "guard", problem});
}

}  // namespace

std::string too_old_for_guard(const std::string& machine, const std::string& release) {
    int major = 0, minor = 0;
    std::sscanf(release.c_str(), "%d.%d", &major, &minor);
    const bool arm = machine == "aarch64";
    if (!arm && machine != "x86_64") return fmt::format("it is not known to work on {}", machine);
    const int needed = arm ? 604 : 518;
    if (major * 100 + minor >= needed) return "";
    return fmt::format("the kernel is {}, and it needs {}.{} or newer on {}", release, needed / 100, needed % 100, machine);
}

bool guard_refuses(const std::string& directory) {
    const auto answer = ask_sidecar(directory, Json{{"request", "guard"}});
    return answer ? (*answer)["guard"].value("state", "off") == "deny" : !GuardPins::all().empty();
}

void examine_guard(Findings& findings, const std::string& directory) {
    const auto policy = NodePolicy::read(node_policy_path(directory));
    if (!policy) return;
    const auto asked = policy->decompile().sidecar.guard;
    if (asked == GuardMode::off) {
        const auto why = lacking();
        findings.push_back({Level::ok, "guard",
                            why.empty() ? "off; this kernel could have it" : "off; it could not be had here: " + why});
        return;
    }
    const auto answer = ask_sidecar(directory, Json{{"request", "guard"}});
    if (answer) return add_answer(findings, (*answer)["guard"]);
    if (!GuardPins::all().empty()) return findings.push_back(kept());
    if (sidecar_listens(directory))
        return findings.push_back({Level::warning, "guard", "rdmaquotad does not answer now: it may be loading the guard; try again "
                                                            "in ten seconds"});
    findings.push_back({Level::problem, "guard", "the policy asks for it, but " + answer.error()});
}

}  // namespace rdmaquota
