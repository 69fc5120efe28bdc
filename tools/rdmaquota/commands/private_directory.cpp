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
#include "shm/policy/policy_writer.hpp"

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

Result<void> fill(const std::string& directory, const Policy& policy) {
    if (auto made = Ledger::create(ledger_path(directory), {}); !made) return made;
    return PolicyWriter::publish(policy_path(directory), policy);
}

}  // namespace

Result<std::string> make_private_directory(const Policy& policy) {
    auto path = base_directory() + "/rdmaquota-run.XXXXXX";
    if (::mkdtemp(path.data()) == nullptr)  // with mode 0700
        return Error{fmt::format("cannot create {}: {}", path, std::strerror(errno))};
    if (const auto filled = fill(path, policy); !filled) {
        remove_private_directory(path);
        return Error{filled.error()};
    }
    return path;
}

bool has_owners(const std::string& directory) {
    auto ledger = Ledger::open(ledger_path(directory));
    if (!ledger) return false;
    ledger->reap();
    return !ledger->owners().empty();
}

void remove_private_directory(const std::string& directory) {
    std::error_code ignored;
    std::filesystem::remove_all(directory, ignored);
}

}  // namespace rdmaquota
