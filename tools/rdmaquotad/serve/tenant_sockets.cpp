#include "tools/rdmaquotad/serve/tenant_sockets.hpp"

#include <vector>

#include <unistd.h>

#include "tools/common/control_client.hpp"

namespace rdmaquota {

std::set<std::string> TenantSockets::wanted() const {
    std::set<std::string> keys;
    if (node_.is_own() || !node_.writable()) return keys;
    for (const auto* tenant : node_.with_ledger())
        if (keys.size() < most && tenant->key().find('#') == std::string::npos) keys.insert(tenant->key());
    return keys;
}

Result<void> TenantSockets::follow() {
    const auto keys = wanted();
    Result<void> result;
    for (const auto& key : have_)
        if (!keys.contains(key)) control_.stop_listening(key);
    std::erase_if(have_, [&](const auto& key) { return !keys.contains(key); });
    for (const auto& key : keys) {
        const auto& here = node_.find(key)->place().here;
        if (have_.contains(key) && control_.listens(key)) continue;
        const auto listening = control_.listen(control_path(here), key);
        if (listening) have_.insert(key);
        else if (result && ::access(here.c_str(), F_OK) == 0) result = listening;  // not a tenant that was removed just now
    }
    return result;
}

}  // namespace rdmaquota
