#include "tools/rdmaquota/explain/event_process.hpp"

#include <sys/stat.h>

#include <fmt/core.h>

#include "tools/common/views/json.hpp"
#include "tools/common/process/node_processes.hpp"

namespace rdmaquota {
namespace {

std::uint64_t namespace_in(const std::string& directory) {
    struct stat status {};
    return ::stat((directory + "/ns/pid").c_str(), &status) == 0 ? status.st_ino : 0;
}

}  // namespace

bool is_pid_here(const Json& event) {
    const auto of_event = number_member(event, "pid_namespace");  // 0: of a process that could not read its own /proc
    return of_event == 0 || of_event == namespace_in("/proc/self");
}

EventProcess::EventProcess(std::uint32_t pid, const std::string& proc) : pid_(pid) {
    const auto directory = fmt::format("{}/{}", proc, pid);
    inner_pid_ = inner_pid(directory);
    if (inner_pid_ != 0) pid_namespace_ = namespace_in(directory);
}

bool EventProcess::is_of(const Json& event) const {
    const auto pid = number_member(event, "pid");
    if (inner_pid_ != 0 && number_member(event, "pid_namespace") == pid_namespace_) return pid == inner_pid_;
    return pid == pid_;
}

}  // namespace rdmaquota
