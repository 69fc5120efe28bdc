// A control socket in the directory of each tenant that the policy, or root, has named: what a container gets mounted as
// its quota directory has the sidecar in it.
#pragma once

#include <set>
#include <string>

#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"

namespace rdmaquota {

class TenantSockets {
public:
    // The first by name. Each takes a descriptor. The tenants of templates have none: their members reach the node's.
    static constexpr std::size_t most = 256;

    TenantSockets(Node& node, ControlSocket& control) : node_(node), control_(control) {}

    // After tenants came or went. Where none can be made, programs of that tenant have no sidecar to ask; the error is of
    // the first.
    Result<void> follow();

private:
    std::set<std::string> wanted() const;

    Node& node_;
    ControlSocket& control_;
    std::set<std::string> have_;
};

}  // namespace rdmaquota
