// Who another process is, as far as the node's matches look.
#pragma once

#include <string>

#include <sys/types.h>

#include "policy/result.hpp"
#include "policy/subject_text.hpp"
#include "shm/policy/node_policy.hpp"

namespace rdmaquota {

// Ids and path as this process's own namespaces have them: the kernel translates both. Root can read every process.
class ProcessSubject {
public:
    // From PROC/PID/status and PROC/PID/cgroup. What cannot be read is not known (with hidepid, for example). The error
    // says that there is no such process, or none that may be seen.
    static Result<ProcessSubject> of(pid_t pid, const std::string& proc = "/proc");

    Subject view() const noexcept {
        return {ids_.user, ids_.group, ids_.groups, cgroup_};
    }  // valid as long as this lives

private:
    ProcessIds ids_;
    std::string cgroup_;
};

}  // namespace rdmaquota
