#include "tools/rdmaquota/commands/private_directory.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include <fmt/core.h>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/limits/device_selectors.hpp"
#include "tools/common/tenants/tenant_files.hpp"

namespace rdmaquota {
namespace {

// sudo and su leave XDG_RUNTIME_DIR set, though it is another user's.
std::string base_directory() {
    const char* runtime = std::getenv("XDG_RUNTIME_DIR");
    struct stat status {};
    const bool usable = runtime != nullptr && *runtime == '/' && ::stat(runtime, &status) == 0 &&
                        S_ISDIR(status.st_mode) && status.st_uid == ::geteuid() && ::access(runtime, W_OK | X_OK) == 0;
    return usable ? runtime : "/tmp";
}

Result<void> fill(const std::string& directory, const TenantLimits& limits) {
    if (auto made = make_directory(directory + "/ledgers", 0700); !made) return made;
    if (auto made = Ledger::create(ledger_path(directory), LedgerAccess{}); !made) return made;
    auto bound = limits;
    bind_devices(bound);
    return LimitsWriter::publish(limits_path(directory), bound);
}

}  // namespace

Result<std::string> make_private_directory(const TenantLimits& limits) {
    auto path = base_directory() + "/rdmaquota-run.XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)  // with mode 0700
        return Error{fmt::format("cannot create {}: {}", path, std::strerror(errno))};
    if (const auto filled = fill(path, limits); !filled) {
        remove_private_directory(path);
        return Error{filled.error()};
    }
    return path;
}

bool has_owners(const std::string& directory) { return has_owners(TenantPlace{"", directory}); }

void remove_private_directory(const std::string& directory) {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
}

}  // namespace rdmaquota
