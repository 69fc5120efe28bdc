// What tenants' processes are on this node. A process in a container notes the pid that it has there, mostly 1.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/common/process/slot_maps.hpp"
#include "tools/common/views/snapshot.hpp"

namespace rdmaquota {

// The pid in the innermost pid namespace of the process whose directory in /proc this is; 0 where that is this one.
std::uint32_t inner_pid(const std::string& directory);

// As of one moment: the node's list of processes is read once, when the first process needs it.
class NodeProcesses {
public:
    explicit NodeProcesses(std::string proc = "/proc") : proc_(std::move(proc)) {}

    // Mappings are read for so long at most from now on, two seconds in all unless this is called; what was not read then is not
    // known.
    void allow(std::chrono::milliseconds time) { left_ = time; }

    // Gives each process of the view its pid in this pid namespace, 0 where that cannot be told, and its cgroup. What a
    // process says of itself holds when the process of that pid began at that moment and, as far as its mappings may be read, has the
    // slot. Else the one that has the slot is
    // looked for: by its mappings, which are the kernel's word, or where these may not be read, by its pid there and its
    // beginning, if only one process fits. `ledger` is the tenant's ledger directory. Sorts the processes by pid again.
    void name(TenantView& tenant, const std::string& ledger);
    // The same for some of a tenant's processes, which stay in order.
    void name(const std::vector<ProcessView*>& processes, const std::string& ledger);

private:
    struct Process {
        std::uint32_t pid, inner;  // inner: 0 in this pid namespace
        std::string directory;
        std::optional<std::string> shared = {};  // its shared mappings, once they were read
        bool readable = false;
    };
    std::vector<Process>& contained();
    std::string maps_of(const std::string& directory);
    bool is_believed(const std::string& directory, std::uint32_t slot, const std::string& ledger);
    bool may_have_slot(Process& process, const LockFiles& files, std::uint32_t slot);
    std::optional<Process> holder(const ProcessView& view, const LockFiles& files);

    std::string proc_;
    std::chrono::nanoseconds left_ = std::chrono::seconds(2);
    std::optional<std::vector<Process>> contained_;  // those in a pid namespace below this one
};

}  // namespace rdmaquota
