// What the doctor examines on a node.
#include <dlfcn.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include <fmt/core.h>

#include "policy/file/policy_file.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "shm/policy/node_policy.hpp"
#include "tools/common/config.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/process/elf_file.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/rdmaquota/doctor/findings.hpp"
#include "tools/rdmaquota/doctor/guard.hpp"
#include "tools/common/limits/node_checks.hpp"
#include "tools/common/process/probe.hpp"
#include "tools/common/process/verbs_copies.hpp"
#include "tools/common/limits/reload.hpp"
#include "tools/common/tenants/container_specification.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/rdmaquota/doctor/compatibility.hpp"
#include "tools/rdmaquota/doctor/containers.hpp"
#include "tools/rdmaquota/doctor/hardened.hpp"
#include "tools/rdmaquota/doctor/slurm.hpp"
#include "tools/rdmaquota/doctor/units.hpp"
#include "tools/rdmaquota/doctor/verbs_files.hpp"
#include "tools/rdmaquota/doctor/verbs_memory.hpp"

namespace rdmaquota {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t most_tenants = 16;  // of which findings are shown

std::string resolved(const std::string& path) {
    std::error_code error;
    const auto real = fs::canonical(path, error);
    return error ? path : real.string();
}

bool exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

// How the provider and its shadows come to be registered again; a package brings a program for it.
std::string registering() {
    const auto adopt = fs::path(config::shadow_dir).parent_path().string() + "/adopt";
    return exists(adopt) ? "run " + adopt : "configure and install rdmaquota again";
}

// The file that the loader gives a program that is started from here and asks for `name`.
std::string loaded_from(const std::string& name) {
    const Probe probe([&name]() -> std::string {
        void* handle = ::dlopen(name.c_str(), RTLD_LAZY);
        link_map* object = nullptr;
        if (handle == nullptr || ::dlinfo(handle, RTLD_DI_LINKMAP, &object) != 0) return "";
        return std::string("\n") + object->l_name;
    });
    // The last line is ours; providers may have written others.
    const auto line = probe.answer().rfind('\n');
    return line == std::string::npos ? "" : probe.answer().substr(line + 1);
}

// --- libibverbs and the providers --------------------------------------------------------------------

std::string provider_file(const std::string& name, const std::string& pabi) {
    const auto suffix = fmt::format("-rdmav{}.so", pabi);
    return name.starts_with('/') ? name + suffix : fmt::format("{}/lib{}{}", config::provider_dir, name, suffix);
}

// The rest of the line that begins with `beginning`, or "".
std::string said(const std::string& text, const std::string& beginning) {
    const auto at = text.find(beginning);
    if (at == std::string::npos) return "";
    const auto from = at + beginning.size();
    return text.substr(from, text.find('\n', from) - from);
}

void examine_provider(Findings& findings, const std::string& name, const std::string& pabi, const Probe& probe,
                      const ProcessMemory& memory) {
    const auto subject = "provider " + name;
    const auto file = provider_file(name, pabi);
    if (!exists(file))
        return findings.push_back({Level::warning, subject, file + " is missing; no program can use it: install it, or remove what names it in " + config::driver_dir});
    switch (adoption_of(memory, resolved(file))) {
        case Adoption::adopted:
            return findings.push_back({Level::ok, subject, "adopted"});
        case Adoption::not_loaded:
            return findings.push_back({Level::warning, subject, file + " does not load; no program can use it"});
        case Adoption::no_table:
        case Adoption::left_alone:
            break;
    }
    const auto why = said(probe.answer(), subject + " is left alone and not limited: ");
    findings.push_back(
        {Level::problem, subject, "not adopted, its devices are not limited" + (why.empty() ? "" : ": " + why)});
}

// Loads libibverbs and our provider as a program would; called in a child process. Returns what our provider logged,
// then the outcome. The log goes through a file, which the provider always writes to when it is told so.
std::string load_providers(const std::string& ours) {
    std::string log = fs::temp_directory_path() / "rdmaquota-doctor-XXXXXX";
    const int descriptor = ::mkstemp(log.data());
    ::setenv("RDMAQUOTA_LOG_LEVEL", "info", 1);
    ::setenv("RDMAQUOTA_LOG_FILE", log.c_str(), 1);
    const bool loaded =
        ::dlopen("libibverbs.so.1", RTLD_NOW) != nullptr && ::dlopen(ours.c_str(), RTLD_NOW) != nullptr;
    const std::string outcome = loaded ? "loaded" : ::dlerror();
    const auto said = file_text(log);
    ::unlink(log.c_str());
    ::close(descriptor);
    return said + outcome;
}

void examine_providers(Findings& findings, const std::vector<std::string>& names, const std::string& pabi,
                       const std::string& ours) {
    const Probe probe([&ours] { return load_providers(ours); });
    const auto memory = ProcessMemory::open(probe.pid());
    if (!probe.answer().ends_with("loaded") || !memory)
        return findings.push_back(
            {Level::problem, "our provider", "does not load: " + (memory ? probe.answer() : memory.error())});
    if (const auto why = said(probe.answer(), "libibverbs (private ABI "); !why.empty())
        findings.push_back({Level::problem, "private ABI", "libibverbs (private ABI " + why});
    for (const auto& name : names)
        if (name != "rdmaquota") examine_provider(findings, name, pabi, probe, *memory);
}

void examine_registration(Findings& findings, const std::vector<std::string>& names) {
    const auto registration = fmt::format("{}/rdmaquota.driver", config::driver_dir);
    if (std::find(names.begin(), names.end(), "rdmaquota") == names.end())
        findings.push_back(
            {Level::problem, "registration",
             registration + " is missing or does not say 'driver rdmaquota': libibverbs does not load us; " + registering()});
    else
        findings.push_back({Level::ok, "registration", fmt::format("{} names us", config::driver_dir)});
}

// False where no provider of ours can be loaded, so that nothing is registered either.
bool examine_libibverbs(Findings& findings) {
    const auto problem = [&](const char* subject, std::string text) {
        findings.push_back({Level::problem, subject, std::move(text)});
        return false;
    };
    const auto library = loaded_from("libibverbs.so.1");
    if (library.empty()) return problem("libibverbs", "the loader finds no libibverbs.so.1: install libibverbs");
    const auto file = resolved(library);
    const auto pabi = pabi_of_file(file);
    if (pabi.empty())
        return problem("libibverbs", file + " has no private ABI that can be named: rdmaquota takes rdma-core's libibverbs");
    findings.push_back({Level::ok, "libibverbs", fmt::format("{}, private ABI {}", file, pabi)});
    const auto ours = fmt::format("{}/librdmaquota-rdmav{}.so", config::provider_dir, pabi);
    if (!exists(ours))
        return problem("private ABI", fmt::format("{} is missing: this version of rdmaquota does not know private ABI {}, or is "
                                                  "not installed; nothing is limited: install a newer rdmaquota",
                                                  ours, pabi));
    utsname kernel{};
    ::uname(&kernel);
    findings.push_back({Level::ok, "compatibility", compatibility(file, pabi, kernel.release)});
    const auto names = driver_names(config::driver_dir);
    examine_registration(findings, names);
    examine_providers(findings, names, pabi, ours);
    return true;
}

// --- shadow libraries --------------------------------------------------------------------------------

std::string first_missing(const std::vector<std::string>& wanted, const std::vector<std::string>& present) {
    for (const auto& version : wanted)
        if (std::find(present.begin(), present.end(), version) == present.end()) return version;
    return "";
}

void examine_shadow(Findings& findings, const std::string& library) {
    const auto shadow = fmt::format("{}/{}", config::shadow_dir, library);
    const auto real = fmt::format("{}/{}", config::real_library_dir, library);
    const auto say = [&](Level level, std::string text) { findings.push_back({level, library, std::move(text)}); };
    if (!exists(real) && !exists(shadow)) return;
    if (!exists(shadow))
        return say(Level::problem,
                   fmt::format("not covered: {} has no shadow, so programs that load it themselves may not be "
                               "limited; {}",
                               real, registering()));
    if (!exists(real))
        return say(Level::problem, fmt::format("{} is missing: programs that are linked to it do not start", real));
    const auto shadow_file = read_elf(shadow);
    const auto real_file = read_elf(real);
    if (!shadow_file || !real_file) return say(Level::problem, shadow_file ? real_file.error() : shadow_file.error());
    if (const auto missing = first_missing(real_file->versions, shadow_file->versions); !missing.empty())
        return say(Level::problem,
                   fmt::format("{} lacks the version node {} of {}: programs that ask for it do not start; "
                               "update rdmaquota",
                               shadow, missing, real));
    const auto found = loaded_from(library);
    if (resolved(found) == resolved(shadow)) return say(Level::ok, fmt::format("the loader gives programs {}", shadow));
    say(Level::problem,
        fmt::format("not covered: the loader gives programs {}, not our shadow of {}; {}",
                    found.empty() ? "none" : found, real,
                    std::getenv("LD_LIBRARY_PATH") != nullptr ? "LD_LIBRARY_PATH is set here" : "run ldconfig"));
}

void examine_shadows(Findings& findings) {
    const auto conf = fmt::format("{}/00-rdmaquota.conf", config::ld_conf_dir);
    std::ifstream stream(conf);
    std::string line;
    while (std::getline(stream, line) && line != config::shadow_dir) {
    }
    if (!stream)
        findings.push_back({Level::problem, "loader",
                            fmt::format("{} does not name {}: programs that load libmlx5 and its like "
                                        "themselves may not be limited; {}",
                                        conf, config::shadow_dir, registering())});
    else
        findings.push_back({Level::ok, "loader", fmt::format("{} names {}", conf, config::shadow_dir)});
    for (const auto name : public_providers)
        examine_shadow(findings, fmt::format("lib{}.so.1", name));
}

// --- policy, ledger, kernel ----------------------------------------------------------------------------

void examine_policy(Findings& findings, const std::string& directory) {
    const auto file = default_policy_file();
    const auto policy = load_policy(file);
    if (!policy)
        findings.push_back({Level::problem, "policy file", policy.error()});
    else
        findings.push_back({Level::ok, "policy file", file + " is valid"});
    if (policy)
        for (const auto& warnings : {policy->warnings, warnings_of_node(*policy)})
            for (const auto& warning : warnings) findings.push_back({Level::warning, "policy file", warning});
    const auto path = is_own_directory(directory) ? limits_path(directory) : node_policy_path(directory);
    struct stat status {};
    if (!is_own_directory(directory))
        if (const auto running = NodePolicy::read(path); !running)
            return findings.push_back({Level::problem, "policy", running.error()});
    if (::stat(path.c_str(), &status) == 0 && directory == system_directory &&
        (status.st_uid != 0 || (status.st_mode & (S_IWGRP | S_IWOTH)) != 0))
        findings.push_back(
            {Level::problem, "policy", path + " can be written by others than root: chown root, chmod 644"});
    else
        findings.push_back({Level::ok, "policy", fmt::format("{} is in force", path)});
}

// Warns of a mode other than enforce; for the tenants besides the main one, only where their mode differs from its.
void examine_mode(Findings& findings, const std::string& who, const TenantPlace& place, Mode& main, bool is_main) {
    const auto limits = LimitsSegment::open(limits_path(place.here));
    if (!limits) return findings.push_back({Level::problem, who, limits.error()});
    if (is_main) main = limits->mode();
    if (limits->mode() != Mode::enforce && (is_main || limits->mode() != main))
        findings.push_back({Level::warning, who, fmt::format("its mode is {}: nothing is denied", name(limits->mode()))});
}

void examine_ledger(Findings& findings, const std::string& who, const TenantPlace& place, bool for_everyone) {
    const auto path = ledger_path(place.here);
    const auto ledger = Ledger::open(path);
    struct stat status {};
    if (!ledger)
        findings.push_back({Level::problem, who, ledger.error()});
    else if (for_everyone && ::stat(data_path(path).c_str(), &status) == 0 && (status.st_mode & 0666) != 0666)
        findings.push_back({Level::problem, who,
                            data_path(path) + " cannot be written by every user: run 'rdmaquota repair --new'"});
    else
        findings.push_back(
            {Level::ok, who, fmt::format("{} is usable, {} processes are in it", path, ledger->owners().size())});
}

// A tenant's ledger is open to its members and to root only.
bool is_closed_to_us(const TenantPlace& place) {
    return ::geteuid() != 0 && ::access(data_path(ledger_path(place.here)).c_str(), R_OK | W_OK) != 0 && errno == EACCES;
}

// Others than `default` are named only when something is wrong with them: there may be hundreds.
void examine_tenants(Findings& findings, const std::string& directory) {
    std::size_t others = 0, closed = 0, shown = 0;
    auto mode = Mode::enforce;
    for (const auto& place : tenant_places(directory)) {
        const bool main = place.key.empty() || place.key == default_tenant;
        if (!main && (place.is_hidden() || is_closed_to_us(place))) {
            ++others, ++closed;
            continue;
        }
        if (!place.has_ledger() && !main) continue;
        Findings found;
        const auto who = main ? std::string("ledger") : "tenant " + place.key;
        examine_mode(found, who, place, mode, main);
        examine_ledger(found, who, place, main && directory == system_directory);
        if (!main && ++others && found.back().level == Level::ok) found.pop_back();
        if (!main && !found.empty() && ++shown > most_tenants) continue;
        findings.insert(findings.end(), found.begin(), found.end());
    }
    if (others != 0)
        findings.push_back({Level::ok, "tenants", fmt::format("{} besides {}{}", others, default_tenant,
                                                              closed == 0 ? "" : fmt::format("; only root and their members may examine {} of them", closed))});
    if (shown > most_tenants)
        findings.push_back({Level::warning, "tenants", fmt::format("findings for {} more are not shown", shown - most_tenants)});
}

bool has_word(const std::string& path, std::string_view wanted) {
    std::ifstream stream(path);
    for (std::string word; stream >> word;)
        if (word == wanted) return true;
    return false;
}

void examine_kernel(Findings& findings) {
    const auto devices = machine_devices();
    if (devices.empty())
        findings.push_back({Level::warning, "devices", "the kernel has no RDMA device"});
    else
        findings.push_back({Level::ok, "devices",
                            fmt::format("{}{}", devices.front(),
                                        devices.size() == 1 ? "" : fmt::format(" and {} more", devices.size() - 1))});
    if (has_word("/sys/fs/cgroup/cgroup.controllers", "rdma") || exists("/sys/fs/cgroup/rdma"))
        findings.push_back({Level::ok, "rdma cgroup", "available"});
    else
        findings.push_back({Level::warning, "rdma cgroup", "not available: the kernel sets no bound beneath ours"});
}

}  // namespace

Findings examine_node(const std::string& directory) {
    Findings findings;
    if (examine_libibverbs(findings)) examine_shadows(findings);
    examine_policy(findings, directory);
    examine_tenants(findings, directory);
    examine_kernel(findings);
    examine_guard(findings, directory);
    examine_units(findings, directory);
    examine_hardening(findings, directory);
    examine_containers(findings, [&](const std::string& tenant) -> Result<Json> {
        if (TenantPlace{tenant, here_path(directory, tenant)}.is_hidden()) return Json();
        return container_specification(tenant, directory);
    });
    examine_slurm(findings, directory);
    return findings;
}

}  // namespace rdmaquota
