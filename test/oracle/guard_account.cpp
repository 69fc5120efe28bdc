#include "guard_account.hpp"

#include <cstdlib>

#include <sys/mman.h>

#include "shm/paths.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/views/json.hpp"

namespace oracle {
namespace {

std::string directory() {
    const char* own = std::getenv("RDMAQUOTA_DIR");
    return own ? own : rdmaquota::system_directory;
}

}  // namespace

unsigned* GuardAccount::shared_count() {
    return static_cast<unsigned*>(
        mmap(nullptr, sizeof(unsigned), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
}

std::optional<std::map<rdmaquota::Resource, std::int64_t>> GuardAccount::used() {
    const auto answer = rdmaquota::ask_sidecar(directory(), rdmaquota::Json{{"request", "guard"}});
    if (!answer || (*answer)["guard"].value("state", "off") == "off") return std::nullopt;
    ++*answers_;
    std::map<rdmaquota::Resource, std::int64_t> all;
    for (const auto& tenant : (*answer)["guard"]["tenants"]) {
        const auto cells = tenant["devices"].value(device_, rdmaquota::Json::object());
        if (tenant["name"] != "default") continue;
        for (const auto& [word, cell] : cells.items())
            if (const auto resource = rdmaquota::find_resource(word)) all[*resource] = cell["used"].get<std::int64_t>();
    }
    return all;
}

void GuardAccount::follow_limits() const {
    (void)rdmaquota::ask_sidecar(directory(), rdmaquota::Json{{"request", "grant"}});
}

}  // namespace oracle
