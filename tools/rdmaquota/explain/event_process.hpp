// Which events are of a process. A process in a container writes the pid that it has there.
#pragma once

#include <cstdint>
#include <string>

#include "tools/common/views/json_fwd.hpp"

namespace rdmaquota {

// Whether the event's pid is one of this process's own pid namespace, so that /proc has it.
bool is_pid_here(const Json& event);

class EventProcess {
public:
    // `pid` is this namespace's. What /proc says of it is read once; nothing of a process that has ended.
    explicit EventProcess(std::uint32_t pid, const std::string& proc = "/proc");

    bool is_of(const Json& event) const;

private:
    std::uint32_t pid_;
    std::uint32_t inner_pid_ = 0;      // 0: it is in no other pid namespace, or that is not known
    std::uint64_t pid_namespace_ = 0;  // of that, as events have it
};

}  // namespace rdmaquota
