#include "tools/common/tenants/slurm_jobs.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <ctime>
#include <sstream>

#include <fmt/core.h>

#include "policy/file/policy_file.hpp"
#include "policy/file/slurm_tables.hpp"
#include "policy/write_all.hpp"
#include "shm/paths.hpp"
#include "tools/common/events/event_text.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/guard/kept_guard.hpp"
#include "tools/common/open_file.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/shares/divide.hpp"
#include "tools/common/tenants/tenant_files.hpp"
#include "tools/common/tenants/tenants.hpp"
#include "tools/common/tenants/transient.hpp"

namespace rdmaquota {
namespace {

using Clock = std::chrono::steady_clock;

// Many jobs may begin and end at once. Slurm waits for each, so this is below the plugin's limit of 120 s, all together.
constexpr std::chrono::seconds patience{100};
constexpr std::chrono::seconds for_division{10};  // of these, whatever has taken long before
constexpr std::chrono::seconds for_undoing{5};    // on top of them

std::chrono::milliseconds until(Clock::time_point end) {
    return std::max(std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now()), std::chrono::milliseconds(1));
}
constexpr off_t most_event_bytes = 256 * 1024;

std::string policy_path(const std::string& directory) { return slurm_directory(directory) + "/policy.toml"; }
std::string events_path(const std::string& directory) { return slurm_directory(directory) + "/events"; }

std::uint64_t now_ns() {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}

void append(const std::string& path, const std::string& line) {
    struct stat status {};
    if (::stat(path.c_str(), &status) == 0 && status.st_size > most_event_bytes)
        (void)std::rename(path.c_str(), (path + ".old").c_str());
    const int file = ::open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
    if (file < 0) return;
    (void)write_all(file, line);
    ::close(file);
}

struct EventFile {
    explicit EventFile(const std::string& path) : file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW)) {
        if (file && ::fstat(file.fd(), &status) != 0) status = {};
    }
    OpenFile file;
    struct stat status {};
};

// Whole lines from `offset` on; returns where the next begins.
off_t add_events(const EventFile& from, off_t offset, std::vector<Json>& events) {
    if (offset > from.status.st_size) offset = 0;
    std::string text(static_cast<std::size_t>(from.status.st_size - offset), '\0');
    const auto count = text.empty() ? 0 : ::pread(from.file.fd(), text.data(), text.size(), offset);
    text.resize(count < 0 ? 0 : static_cast<std::size_t>(count));
    text.resize(text.rfind('\n') + 1);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);)
        if (auto event = Json::parse(line, nullptr, false); event.is_object()) events.push_back(std::move(event));
    return offset + static_cast<off_t>(text.size());
}

// Whether something is divided among the tenant and others. With many jobs that takes long, so it is left out
// otherwise.
bool is_bounded_above(const Policy& policy, std::string_view tenant) {
    if (!policy.node.empty()) return true;
    for (auto above = parent_of(tenant); above != node_tenant; above = parent_of(above))
        for (const auto& other : policy.tenants)
            if (other.name == above || is_instance_of(above, other.name)) return true;
    return false;
}

Result<void> divide(const std::string& directory, const std::string& tenant, Clock::time_point end) {
    const auto policy = running_policy(directory);
    if (!policy) return Error{policy.error()};
    const bool guarded = policy->sidecar.guard != GuardMode::off;
    if (!is_bounded_above(*policy, tenant)) {
        if (guarded) tell_guard(directory);
        return {};
    }
    const auto divided = divide_grants(directory, until(end));
    if (!divided) return Error{divided.error()};
    // Where it has no room for the job, the provider still holds it to its share.
    if (*divided == Divided::here && guarded) (void)lead_kept_guard(directory);
    return {};
}

Result<void> remove_tenants(const std::string& directory, std::uint32_t job, Clock::time_point end) {
    const auto policy = running_policy(directory);
    if (!policy) return Error{policy.error()};
    for (const auto& tenant : policy->tenants)
        if (tenant.transient && is_tenant_of(tenant.name, job))
            if (const auto gone = remove_transient(directory, tenant.name, until(end)); !gone) return Error{gone.error()};
    return {};
}

}  // namespace

Result<void> put_slurm(const std::string& directory, const std::optional<SlurmPolicy>& policy) {
    const auto path = policy_path(directory);
    if (policy) {
        if (const auto made = make_directory(slurm_directory(directory)); !made) return made;
        return replace_file(path, slurm_text(*policy));
    }
    return ::unlink(path.c_str()) == 0 || errno == ENOENT ? Result<void>() : cannot_write(path);
}

Result<std::optional<SlurmPolicy>> running_slurm(const std::string& directory) {
    const auto path = policy_path(directory);
    if (::access(path.c_str(), F_OK) != 0 && errno == ENOENT) return std::optional<SlurmPolicy>();
    auto policy = parse_policy(file_text(path), path);
    if (!policy) return Error{policy.error()};
    return std::move(policy->slurm);
}

Result<void> begin_job(const std::string& directory, const SlurmJob& job, ScopeLimits limits) {
    const auto end = Clock::now() + patience, division = end - for_division;
    if (const auto ended = remove_tenants(directory, job.id, division); !ended) return ended;
    TenantPolicy tenant;
    tenant.name = tenant_of(job);
    Match match;
    match.cgroup = cgroup_of(job);
    match.members = {std::to_string(job.uid)};
    tenant.matches.push_back(std::move(match));
    tenant.limits[index(Scope::tenant)] = std::move(limits);
    if (const auto added = add_transient(directory, std::move(tenant), until(division)); !added) return added;
    const auto divided = divide(directory, tenant_of(job), end);
    // It would be held to the nothing that it began with, while the caller says that it has no quota of its own.
    if (!divided) (void)remove_transient(directory, tenant_of(job), for_undoing);
    return divided;
}

Result<void> end_job(const std::string& directory, std::uint32_t job) {
    const bool in_force = ::access(node_policy_path(directory).c_str(), F_OK) == 0 || errno != ENOENT;
    return in_force ? remove_tenants(directory, job, Clock::now() + patience) : Result<void>();
}

void record_job_event(const std::string& directory, const SlurmJob& job, const std::string& text) {
    if (!make_directory(slurm_directory(directory))) return;
    const Json event{{"source", "slurm"},
                     {"time", event_time(now_ns(), false)},
                     {"kind", "job"},
                     {"tenant", tenant_of(job)},
                     {"text", text}};
    append(events_path(directory), dump(event) + "\n");
}

std::vector<Json> job_events(const std::string& directory) {
    JobEventCursor first;
    return job_events(directory, first);
}

// The newer file is opened first: it is the older one where another has taken its name since.
std::vector<Json> job_events(const std::string& directory, JobEventCursor& next) {
    std::vector<Json> events;
    const EventFile newer(events_path(directory)), older(events_path(directory) + ".old");
    if (!newer.file && next.file != 0) return events;
    if (!newer.file || newer.status.st_ino != next.file) {
        const bool known = older.status.st_ino == next.file;
        if (older.file) (void)add_events(older, known ? next.offset : 0, events);
        next = {newer.status.st_ino, 0};
    }
    if (newer.file) next.offset = add_events(newer, next.offset, events);
    return events;
}

}  // namespace rdmaquota
