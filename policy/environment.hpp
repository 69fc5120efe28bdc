// Limits and log settings in a process's environment. They can only tighten: the smaller of the node's limit and the
// environment's holds.
//
//   RDMAQUOTA_LIMIT         "qp=2,mr_bytes=1GiB"   this process, sum over devices
//   RDMAQUOTA_TENANT_LIMIT  the same for the tenant as this process sees it; in both, DEVICE:RES=N is a
//                           limit for that device or port, as in "mlx5_0/1:qp=4"
//   RDMAQUOTA_LOG_LEVEL     none|error|warning|info|debug
//   RDMAQUOTA_LOG_FILE      a file to append to instead of the policy's log target
//
// and, when RDMA_INTERCEPT_ENABLE is 1, the names of the interceptor that this project succeeds:
//   RDMA_INTERCEPT_ENABLE_QP_CONTROL, _MAX_QP_PER_PROCESS, _MAX_GLOBAL_QP (the two need QP_CONTROL),
//   _MAX_MR_PER_PROCESS, _MAX_GLOBAL_MR, _MAX_MEMORY_PER_PROCESS (MiB), _MAX_GLOBAL_MEMORY (bytes),
//   _LOG_LEVEL, _LOG_FILE_PATH.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "policy/policy.hpp"

namespace rdmaquota {

struct Tightening {
    LimitRow process = unset_row();  // sum over devices
    LimitRow tenant = unset_row();   // sum over devices
    ScopeLimits process_devices;     // limits of single devices and ports
    ScopeLimits tenant_devices;
    std::optional<LogLevel> log_level;
    std::string log_file;               // empty: as the policy says
    std::vector<std::string> warnings;  // values that were ignored, one line each
};

// `lookup` is secure_getenv in the provider (a setuid program ignores its environment) and a map
// in tests; it returns nullptr for a variable that is not set.
using EnvironmentLookup = const char* (*)(const char* name);
Tightening read_environment(EnvironmentLookup lookup);

}  // namespace rdmaquota
