// Which tenants a user sees over the control socket: `default` and those whose ledgers it may charge. Root, and the user
// that the daemon runs as, see all. At a tenant's own socket its members see that tenant, and nobody anything else.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"

namespace rdmaquota {

class Visibility {
public:
    explicit Visibility(Node& node) : node_(node) {}

    bool sees(const Peer& peer, Tenant& tenant);
    // By key, and by the name that is shown. Nobody but the privileged sees a tenant that is gone.
    bool sees_key(const Peer& peer, std::string_view key);
    bool sees_name(const Peer& peer, std::string_view name);
    // An event with this in its field `tenant`; one with none is of the node.
    bool sees_event(const Peer& peer, std::string_view name);

private:
    Node& node_;
};

}  // namespace rdmaquota
