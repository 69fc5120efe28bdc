// What tenants' processes are on this node, remembered: /proc is asked for each of them once, and again after a while.
//
// What is asked in one call is bounded in time, so that a ledger full of strange pids keeps nobody waiting; the rest
// has no pid until a later call. One thread.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/common/process/node_processes.hpp"

namespace rdmaquota {

class ProcessNames {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::milliseconds time_for_all{15}, time_for_mappings{50};
    static constexpr std::chrono::seconds known_for{30}, unknown_for{2};

    explicit ProcessNames(std::string proc = "/proc") : proc_(std::move(proc)) {}

    struct Who {
        std::uint32_t slot, pid;  // by its own word
        std::uint64_t start_time;
        explicit Who(const ProcessView& process)
            : slot(process.slot), pid(process.pid), start_time(process.start_time) {}
        auto operator<=>(const Who&) const = default;
    };
    struct Known {
        std::uint32_t pid, inner_pid;
        std::string cgroup;
        Clock::time_point due;
    };
    using OfLedger = std::map<Who, Known>;

    // As NodeProcesses::name, for the ledger at this path. `known` is what earlier calls found out; it is of the view's
    // processes alone afterwards.
    void name(TenantView& tenant, const std::string& ledger, OfLedger& known, Clock::time_point now = Clock::now());

private:
    void ask(const std::vector<ProcessView*>& processes, const std::string& ledger, Clock::time_point now,
             OfLedger& known);

    std::string proc_;
    std::optional<NodeProcesses> processes_;  // as of this moment:
    Clock::time_point listed_{};
};

}  // namespace rdmaquota
