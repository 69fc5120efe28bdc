#include "tools/rdmaquotad/serve/visibility.hpp"

namespace rdmaquota {

bool Visibility::sees(const Peer& peer, Tenant& tenant) {
    if (!peer.tenant.empty())
        return tenant.key() == peer.tenant && tenant.has_ledger() && tenant.admits_inside(peer.uid, peer.groups);
    if (peer.privileged || tenant.key() == default_tenant || node_.is_own()) return true;
    return tenant.has_ledger() && tenant.admits(peer.uid, peer.groups);
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

bool Visibility::sees_event(const Peer& peer, std::string_view name) {
    return name.empty() ? peer.tenant.empty() : sees_name(peer, name);
}

}  // namespace rdmaquota
