// Where and to whom the metrics are served, by the policy and the files that it names.
#pragma once

#include "policy/sidecar.hpp"
#include "tools/rdmaquotad/serve/http_server.hpp"

namespace rdmaquota {

// Reads the files. The error says which of them cannot be used; nothing may be served then.
Result<Listener> metrics_listener(const Sidecar& sidecar);

}  // namespace rdmaquota
