#include "tools/common/process/node_processes.hpp"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <sstream>

#include <fmt/core.h>

#include "policy/subject_text.hpp"
#include "tools/common/text/directory_names.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/process/maps_reader.hpp"
#include "tools/common/process/process_stat.hpp"

namespace rdmaquota {
namespace {

bool has_slot(const std::string& maps, const LockFiles& files, std::uint32_t slot) {
    const auto slots = slots_in_maps(maps, files);
    return std::find(slots.begin(), slots.end(), LedgerSlot{0, slot}) != slots.end();
}

// The lines of a text of /proc/PID/maps that can be of a lock file, which is mapped shared.
std::string shared_of(const std::string& maps) {
    std::string shared;
    std::istringstream lines(maps);
    for (std::string line; std::getline(lines, line);)
        if (const auto space = line.find(' '); space != line.npos && line.substr(space + 1, 4).ends_with('s'))
            shared += line + '\n';
    return shared;
}

}  // namespace

std::uint32_t inner_pid(const std::string& directory) {
    const auto text = file_text(directory + "/status");
    const auto at = text.find("\nNSpid:");
    if (at == text.npos) return 0;
    std::istringstream words(text.substr(at + 7, text.find('\n', at + 1) - at - 7));
    std::uint32_t pid = 0, count = 0;
    while (words >> pid) ++count;
    return count > 1 ? pid : 0;
}

// Empty also where a process does not let itself be read.
std::string NodeProcesses::maps_of(const std::string& directory) {
    if (left_ <= left_.zero()) return {};
    const auto begin = std::chrono::steady_clock::now();
    auto maps = read_maps(directory);
    left_ -= std::chrono::steady_clock::now() - begin;
    return maps ? std::move(maps->text) : std::string();
}

std::vector<NodeProcesses::Process>& NodeProcesses::contained() {
    if (contained_) return *contained_;
    contained_.emplace();
    for (const auto& name : directory_names(proc_)) {
        std::uint32_t pid = 0;
        if (std::from_chars(name.data(), name.data() + name.size(), pid).ec != std::errc()) continue;
        const auto directory = proc_ + "/" + name;
        if (const auto inner = inner_pid(directory); inner != 0)
            contained_->push_back({pid, inner, directory});
    }
    return *contained_;
}

// Each process's mappings are read once, however many slots are asked for; the one that fits is read again, since it
// may have ended meanwhile.
bool NodeProcesses::may_have_slot(Process& process, const LockFiles& files, std::uint32_t slot) {
    if (!process.shared) {
        const auto maps = maps_of(process.directory);
        process.readable = !maps.empty();
        process.shared = shared_of(maps);
    }
    return has_slot(*process.shared, files, slot) && has_slot(maps_of(process.directory), files, slot);
}

// None when none, or not one alone, can be it. A process that could not read its own /proc noted no beginning.
std::optional<NodeProcesses::Process> NodeProcesses::holder(const ProcessView& view, const LockFiles& files) {
    const auto of_the_node = fmt::format("{}/{}", proc_, view.pid);
    if (view.start_time == 0 && inner_pid(of_the_node) == 0 &&
        has_slot(maps_of(of_the_node), files, view.slot))
        return Process{view.pid, 0, of_the_node};
    const Process* likely = nullptr;
    std::size_t count = 0;
    for (auto& process : contained()) {
        if (process.inner != view.pid) continue;
        if (may_have_slot(process, files, view.slot)) return process;
        if (process.readable || start_time_of(process.directory) != view.start_time) continue;
        likely = &process;
        ++count;
    }
    return count == 1 ? std::optional(*likely) : std::nullopt;
}

// A slot may say that it is anybody's. Where that process's mappings may not be read, or there is no time, it is believed.
bool NodeProcesses::is_believed(const std::string& directory, std::uint32_t slot, const std::string& ledger) {
    const auto maps = maps_of(directory);
    if (maps.empty()) return true;
    LockFiles file;
    add_lock_file(file, ledger, slot, 0);
    return has_slot(maps, file, slot);
}

void NodeProcesses::name(const std::vector<ProcessView*>& processes, const std::string& ledger) {
    std::vector<ProcessView*> strangers;
    for (auto* process : processes) {
        const auto directory = fmt::format("{}/{}", proc_, process->pid);
        if (start_time_of(directory) == process->start_time && inner_pid(directory) == 0 &&
            is_believed(directory, process->slot, ledger))
            process->cgroup = cgroup_path(file_text(directory + "/cgroup"));
        else
            strangers.push_back(process);
    }
    if (strangers.empty()) return;
    LockFiles files;
    add_lock_files(files, ledger, 0);
    for (auto* stranger : strangers) {
        const auto found = holder(*stranger, files);
        if (!found || found->inner != 0) stranger->inner_pid = stranger->pid;
        stranger->pid = found ? found->pid : 0;
        if (found) stranger->cgroup = cgroup_path(file_text(found->directory + "/cgroup"));
    }
}

void NodeProcesses::name(TenantView& tenant, const std::string& ledger) {
    std::vector<ProcessView*> processes;
    for (auto& process : tenant.processes) processes.push_back(&process);
    name(processes, ledger);
    std::sort(tenant.processes.begin(), tenant.processes.end(),
              [](const ProcessView& a, const ProcessView& b) { return a.pid < b.pid; });
}

}  // namespace rdmaquota
