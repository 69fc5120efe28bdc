#include "tools/common/limits/metrics_files.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

constexpr mode_t exposing = S_IWGRP | S_IRWXO;

Result<void> check(const char* key, const std::string& path, bool secret) {
    if (path.empty()) return {};
    struct stat status {};
    if (::stat(path.c_str(), &status) != 0) return Error{fmt::format("{}: cannot use {}: {}", key, printable(path), std::strerror(errno))};
    if (!S_ISREG(status.st_mode)) return Error{fmt::format("{}: {} is not a regular file", key, printable(path))};
    if (!secret) return {};
    if (status.st_uid != 0 && status.st_uid != ::geteuid())
        return Error{fmt::format("{0}: {1} belongs to user {2}, who could change it; run: chown root {1}", key, printable(path), status.st_uid)};
    if ((status.st_mode & exposing) != 0)
        return Error{fmt::format("{0}: other users can read or change {1} (mode {2:04o}); run: chmod 600 {1}", key, printable(path),
                                 status.st_mode & 07777)};
    return {};
}

}  // namespace

Result<void> check_metrics_files(const MetricsAccess& metrics) {
    if (auto done = check("metrics_certificate", metrics.certificate, false); !done) return done;
    if (auto done = check("metrics_key", metrics.key, true); !done) return done;
    if (auto done = check("metrics_token", metrics.token, true); !done) return done;
    return check("metrics_client_ca", metrics.client_ca, false);
}

}  // namespace rdmaquota
