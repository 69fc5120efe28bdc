// What the doctor examines in a process, which may be hostile.

#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "tools/common/config.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/process/elf_file.hpp"
#include "tools/common/process/open_devices.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/doctor/findings.hpp"
#include "tools/rdmaquota/doctor/guard.hpp"
#include "tools/rdmaquota/doctor/hardened.hpp"
#include "tools/rdmaquota/doctor/verbs_files.hpp"
#include "tools/rdmaquota/doctor/verbs_memory.hpp"

namespace rdmaquota {
namespace {

void examine_descriptor(Findings& findings, const OpenDevice& device, const std::vector<OpenContext>& contexts) {
    const auto subject = fmt::format("descriptor {} ({})", device.descriptor, device.name);
    const auto context = std::find_if(contexts.begin(), contexts.end(),
                                      [&](const OpenContext& one) { return one.descriptor == device.descriptor; });
    if (context == contexts.end())
        findings.push_back({Level::problem, subject,
                            "not covered: no context of libibverbs has it; it was inherited or received, or the "
                            "program talks to the kernel itself (raw ioctl)"});
    else if (context->ours)
        findings.push_back({Level::ok, subject, fmt::format("owned by {}, adopted", context->provider)});
    else if (context->table_adopted)
        findings.push_back({Level::problem, subject,
                            fmt::format("not covered: {} opened it before it was adopted", context->provider)});
    else
        findings.push_back({Level::problem, subject,
                            fmt::format("not covered: owned by {}, which is not adopted", context->provider)});
}

struct InUse {
    std::set<std::string> devices;    // names
    std::set<std::string> providers;  // files
};

InUse examine_descriptors(Findings& findings, const std::vector<OpenDevice>& devices, const ProcessMemory& memory) {
    std::map<std::string, std::vector<OpenContext>> contexts;
    InUse in_use;
    for (const auto& device : devices) {
        if (contexts.count(device.node) == 0) contexts[device.node] = open_contexts(memory, device.name, device.node);
        examine_descriptor(findings, device, contexts[device.node]);
        in_use.devices.insert(device.name);
        for (const auto& context : contexts[device.node]) in_use.providers.insert(context.provider);
    }
    return in_use;
}

// --- what can go around us -------------------------------------------------------------------------

bool is_provider_library(const std::string& file) {
    const auto name = file.substr(file.rfind('/') + 1);
    for (const auto provider : public_providers)
        if (name.starts_with(fmt::format("lib{}.so", provider))) return true;
    return name.find("-rdmav") != std::string::npos && !name.starts_with("librdmaquota");
}

constexpr std::size_t most_libraries = 64;  // libibverbs has some twenty providers

void examine_libraries(Findings& findings, const ProcessMemory& memory, const InUse& in_use) {
    std::set<std::string> files;
    for (const auto& mapping : memory.maps())
        if (mapping.executable && files.size() < most_libraries && is_provider_library(mapping.file))
            files.insert(mapping.file);
    for (const auto& file : files) {
        if (adoption_of(memory, file) == Adoption::adopted) continue;
        if (in_use.providers.contains(file))
            findings.push_back({Level::problem, "library", fmt::format("not covered: {} is loaded and not adopted", file)});
        else
            findings.push_back({Level::warning, "library", fmt::format("{} is loaded and not adopted; the process has no device open "
                                                                       "through it, and one would not be covered", file)});
    }
}

// Copies of libibverbs that the provider is not registered with: what they open is held where the environment names the provider, as
// `rdmaquota run` does, and where another copy has loaded it.
void examine_copies(Findings& findings, const ProcessMemory& memory) {
    std::set<std::string> files;
    for (const auto& mapping : memory.maps())
        if (mapping.executable && mapping.file.find("ibverb") != std::string::npos && files.size() < most_libraries)
            files.insert(mapping.file);
    for (const auto& path : files) {
        const auto file = read_verbs_file(path);
        if (!file || !registered_by(*file).empty()) continue;
        const auto prefix = prefix_of(*file);
        findings.push_back({Level::warning, "libibverbs",
                            prefix.empty() ? path + " cannot be adopted: what it opens may not be covered"
                                           : fmt::format("{} does not load the provider: run 'rdmaquota adopt {}'", path, prefix)});
    }
}

void examine_program(Findings& findings, int pid) {
    const auto program = read_elf(fmt::format("/proc/{}/exe", pid));
    if (!program) return findings.push_back({Level::warning, "program", program.error()});
    if (!program->interpreted)
        return findings.push_back(
            {Level::problem, "program", "not covered: it is statically linked, and libibverbs in it does not load us"});
    if (!program->runpath.empty())
        findings.push_back(
            {Level::ok, "program",
             fmt::format("has RUNPATH {}; what it loaded from there is judged below", program->runpath)});
}

// --- counts ----------------------------------------------------------------------------------------

struct Kind {
    const char* kernel;  // as `rdma resource show` names it
    Resource resource;
};
constexpr Kind kinds[] = {{"ctx", Resource::hca_handle}, {"pd", Resource::pd}, {"cq", Resource::cq},
                          {"qp", Resource::qp},          {"mr", Resource::mr}, {"srq", Resource::srq}};

// The process's objects of a kind, by device, as the kernel lists them; nullopt where it cannot be asked.
std::optional<std::map<std::string, std::uint64_t>> kernel_counts(int pid, const char* kind) {
    FILE* pipe =
        ::popen(fmt::format("PATH=$PATH:/usr/sbin:/sbin rdma -j resource show {} 2>/dev/null", kind).c_str(), "re");
    if (pipe == nullptr) return std::nullopt;
    std::string text;
    char buffer[4096];
    for (std::size_t got; (got = std::fread(buffer, 1, sizeof buffer, pipe)) > 0;) text.append(buffer, got);
    if (::pclose(pipe) != 0) return std::nullopt;
    std::map<std::string, std::uint64_t> counts;
    const auto rows = Json::parse(text, nullptr, false);
    if (!rows.is_array()) return counts;
    for (const auto& row : rows)
        if (row.is_object() && row.value("pid", 0) == pid) ++counts[row.value("ifname", "")];
    return counts;
}

std::uint64_t ledger_count(const Ledger& ledger, std::uint32_t slot, const std::string& device, Resource resource) {
    for (const auto& [number, name] : devices_of(ledger))
        if (name == device) return ledger.usage(slot, number, resource);
    return 0;
}

void compare(Findings& findings, const Ledger& ledger, std::uint32_t slot, int pid, const std::string& device) {
    std::string text;
    bool more = false;
    for (const auto& [kernel, resource] : kinds) {
        const auto counts = kernel_counts(pid, kernel);
        if (!counts)
            return findings.push_back(
                {Level::warning, "counts", "the kernel's are not known: 'rdma' of iproute2 cannot tell them"});
        const auto found = counts->find(device);
        const auto there = found == counts->end() ? 0 : found->second;
        const auto here = ledger_count(ledger, slot, device, resource);
        more = more || there > here;
        text += fmt::format("{}{} {}/{}", text.empty() ? "" : ", ", info(resource).name, here, there);
    }
    findings.push_back(
        {more ? Level::problem : Level::ok, "counts on " + device,
         "ledger/kernel: " + text + (more ? "; some were made by calls that are not counted, or by others" : "")});
}

// False when the process has no slot in this ledger.
bool examine_ledger(Findings& findings, int pid, const std::string& path, const std::set<std::string>& devices) {
    const auto ledger = Ledger::open(path);
    if (!ledger) return false;
    const auto owners = ledger->owners();
    const auto owner = std::find_if(owners.begin(), owners.end(), [pid](const OwnerView& one) {
        return one.identity.pid == static_cast<std::uint32_t>(pid);
    });
    if (owner == owners.end()) return false;
    findings.push_back({Level::ok, "owner slot", fmt::format("{} of {}", owner->slot, path)});
    for (const auto& device : devices) compare(findings, *ledger, owner->slot, pid, device);
    return true;
}

// It may have slots with several tenants.
void examine_accounts(Findings& findings, int pid, const std::string& directory, const std::set<std::string>& devices) {
    bool counted = false;
    for (const auto& place : tenant_places(directory))
        counted |= examine_ledger(findings, pid, ledger_path(place.here), devices);
    if (counted) return;
    findings.push_back({Level::problem, "owner slot",
                        fmt::format("none in the ledgers of {}: nothing of this process is counted", directory)});
    examine_reach(findings, pid, directory);
}

}  // namespace

Findings examine_process(int pid, const std::string& directory) {
    const auto devices = open_devices(pid);
    if (!devices) return {{Level::problem, "process", devices.error()}};
    const auto memory = ProcessMemory::open(pid);
    if (!memory) return {{Level::problem, "process", memory.error()}};
    Findings findings;
    examine_program(findings, pid);
    const auto in_use = examine_descriptors(findings, *devices, *memory);
    examine_libraries(findings, *memory, in_use);
    examine_copies(findings, *memory);
    if (in_use.devices.empty())
        findings.push_back({Level::ok, "devices", "it has none open"});
    else
        examine_accounts(findings, pid, directory, in_use.devices);
    if (!in_use.devices.empty() && guard_refuses(directory)) {
        for (auto& finding : findings) finding.level = std::min(finding.level, Level::warning);
        findings.push_back({Level::ok, "guard", "the kernel refuses what exceeds a limit, whatever is found above"});
    }
    return findings;
}

}  // namespace rdmaquota
