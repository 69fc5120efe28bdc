#include "tools/rdmaquotad/serve/visibility.hpp"

namespace rdmaquota {

bool Visibility::sees(const Peer& peer, Tenant& tenant) {
    if (peer.privileged || tenant.key() == default_tenant || node_.is_own()) return true;
    if (!tenant.has_ledger()) return false;
    return tenant.admits(peer.uid, peer.groups);
}

bool Visibility::sees_key(const Peer& peer, std::string_view key) {
    if (peer.privileged) return true;
    auto* tenant = node_.find(key);
    return tenant != nullptr && sees(peer, *tenant);
}

bool Visibility::sees_name(const Peer& peer, std::string_view name) {
    if (peer.privileged) return true;
    if (auto* tenant = node_.find(name)) return sees(peer, *tenant);
    for (auto* tenant : node_.with_ledger())
        if (tenant->name() == name) return sees(peer, *tenant);
    return false;
}

}  // namespace rdmaquota
