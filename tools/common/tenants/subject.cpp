#include "tools/common/tenants/subject.hpp"

#include <fmt/core.h>

#include "tools/common/text/file_text.hpp"

namespace rdmaquota {

Result<ProcessSubject> ProcessSubject::of(pid_t pid, const std::string& proc) {
    const auto directory = fmt::format("{}/{}", proc, pid);
    const auto status = file_text(directory + "/status");
    if (pid <= 0 || status.empty()) return Error{fmt::format("there is no process {}, or it may not be seen", pid)};
    ProcessSubject subject;
    subject.ids_ = process_ids(status);
    subject.cgroup_ = cgroup_path(file_text(directory + "/cgroup"));
    return subject;
}

}  // namespace rdmaquota
