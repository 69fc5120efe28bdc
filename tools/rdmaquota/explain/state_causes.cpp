#include <unistd.h>

#include <algorithm>
#include <sstream>

#include <fmt/core.h>

#include "policy/subject_text.hpp"
#include "shm/paths.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/process/memory_lock.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/common/limits/room.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/doctor/findings.hpp"
#include "tools/rdmaquota/explain/cause.hpp"

namespace rdmaquota {
namespace {

void add_devices(Causes& causes) {
    if (machine_devices().empty())
        causes.push_back(
            {"no device", "this node has no RDMA device", "load its driver, or, in a container, give it one"});
}

// What is full in the tenants in which the process is.
void add_full(int pid, const std::string& directory, Causes& causes) {
    const auto tenants = read_tenants(directory);
    if (!tenants) return;
    for (const auto& tenant : *tenants) {
        const auto& processes = tenant.view.processes;
        const bool in = std::any_of(processes.begin(), processes.end(), [pid](const ProcessView& process) {
            return process.pid == static_cast<std::uint32_t>(pid);
        });
        const auto limits = LimitsSegment::open(limits_path(tenant.place.here), LimitsSegment::Parts::all);
        if (!in || !limits) continue;
        for (const auto& bound : tightest(bounds(tenant.view, *limits, pid), tenant.view, *limits))
            if (bound.room() == 0)
                causes.push_back(
                    {"full",
                     fmt::format("{} on {}: {} of {} used ({} of tenant {})", info(bound.resource).name,
                                 printable(bound.device), format_amount(bound.resource, bound.usage),
                                 format_amount(bound.resource, bound.limit),
                                 bound.scope == Scope::process ? "this process" : "all", printable(tenant.view.name)),
                     fmt::format("rdmaquota which --pid {} shows what may still be created", pid)});
    }
}

void add_memory_lock(int pid, Causes& causes) {
    constexpr std::uint64_t little = 64 << 20;
    const auto lock = memory_lock(pid);
    if (!lock || !lock->bounds() || (lock->limit > little && lock->pinned < lock->limit / 10 * 9)) return;
    causes.push_back(
        {"memory lock",
         fmt::format("RLIMIT_MEMLOCK lets it pin {}, of which {} are pinned: registrations beyond that "
                     "fail with ENOMEM",
                     format_amount(Resource::mr_bytes, lock->limit), format_amount(Resource::mr_bytes, lock->pinned)),
         "raise it: ulimit -l in the shell, LimitMEMLOCK= in a unit, or memlock in limits.conf(5)"});
}

// The value of `key` in the line of the device in rdma.max or rdma.current; none for "max" and where there is none.
std::optional<std::uint64_t> in_rdma_file(const std::string& file, const std::string& device, const std::string& key) {
    std::istringstream lines(file_text(file));
    for (std::string line; std::getline(lines, line);) {
        std::istringstream words(line);
        std::string word;
        if (!(words >> word) || word != device) continue;
        while (words >> word)
            if (word.starts_with(key + "=") && word != key + "=max")
                return std::strtoull(word.c_str() + key.size() + 1, nullptr, 10);
    }
    return std::nullopt;
}

// The process's cgroup and all above it, where rdma.max is reached.
void add_cgroup(int pid, Causes& causes) {
    const auto text = file_text(fmt::format("/proc/{}/cgroup", pid));
    std::string path(cgroup_path(text));
    for (; path.size() > 1; path.erase(path.rfind('/')))
        for (const auto& device : machine_devices())
            for (const std::string key : {"hca_handle", "hca_object"}) {
                const auto group = "/sys/fs/cgroup" + path;
                const auto most = in_rdma_file(group + "/rdma.max", device, key);
                const auto now = in_rdma_file(group + "/rdma.current", device, key);
                if (most && now.value_or(0) >= *most)
                    causes.push_back({"rdma cgroup",
                                      fmt::format("{} on {}: the cgroup {} has {} of {} (rdma.max); more fails with "
                                                  "EAGAIN",
                                                  key, device, printable(path), now.value_or(0), *most),
                                      fmt::format("echo '{} {}=max' > {}/rdma.max", device, key, printable(group))});
            }
}

// Also a libibverbs whose private ABI is not known.
void add_coverage(int pid, const std::string& directory, Causes& causes) {
    constexpr std::string_view kind = "not covered", in_text = "not covered: ";
    for (const auto& finding : examine_process(pid, directory)) {
        if (finding.level != Level::problem) continue;
        const auto text = printable(finding.text);
        causes.push_back({std::string(kind),
                          fmt::format("{}: {}", printable(finding.subject),
                                      text.starts_with(in_text) ? text.substr(in_text.size()) : text),
                          "rdmaquota doctor looks at the whole node"});
    }
}

}  // namespace

Causes causes_now(int pid, const std::string& directory) {
    Causes causes;
    add_devices(causes);
    add_full(pid, directory, causes);
    add_memory_lock(pid, causes);
    add_cgroup(pid, causes);
    if (pid != ::getpid()) add_coverage(pid, directory, causes);
    return causes;
}

}  // namespace rdmaquota
