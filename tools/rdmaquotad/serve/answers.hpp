// Answers the requests of the control socket; rdmaquotad(8) describes both.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/common/views/json_fwd.hpp"
#include "tools/rdmaquotad/node/instances.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"
#include "tools/rdmaquotad/serve/request.hpp"
#include "tools/rdmaquotad/serve/tenant_views.hpp"
#include "tools/rdmaquotad/serve/visibility.hpp"

namespace rdmaquota {

class Answers {
public:
    // Whether the one who asks sees a tenant: by its key, or the name that is shown.
    using Sees = std::function<bool(const std::string& tenant)>;

    // Where the answers come from. All of it outlives this.
    struct Sources {
        Node& node;
        const NodeEvents& events;
        TenantViews& views;
        Visibility& visibility;
        Instances& instances;
        std::function<Json(const Sees& by_key)> status;    // of the daemon
        std::function<Json(const Sees& by_key)> bypasses;  // at present, each with the name of its tenant
        std::function<Text(const Request&, const Sees& by_name)> history;  // an empty `by_name`: sees all
        // Divides anew: for one tenant, with when to say so; for all.
        std::function<Result<std::function<bool()>>(const std::string& tenant)> grant;
        std::function<Result<void>()> divide;
        std::function<Json(const Sees& by_name)> guard;
        std::function<Result<std::string>()> guard_off;
        std::function<Result<Json>(const Delivery* delivery)> cluster;
        std::function<Result<Json>(const Peer&, bool renewed)> web;  // where the page is, with the token of this user
    };
    explicit Answers(Sources sources) : sources_(std::move(sources)) {}

    Answer answer(const Peer& peer, std::string_view line);

private:
    Answer grant(const Peer& peer, const std::string& tenant);
    Result<Json> give(const Peer& peer, const Request& request);
    std::vector<Tenant*> seen_by(const Peer& peer);
    Sees by_key(const Peer& peer);
    Json stats(const Peer& peer, const std::vector<Tenant*>& tenants);
    Text cached_stats(const Peer& peer);
    Result<Json> process(const Peer& peer, std::uint32_t pid);
    Json events(const Peer& peer, std::uint64_t since);
    Result<Json> change(const Peer& peer, const Request& request);
    Result<Json> instance(const Peer& peer);

    Sources sources_;
    // By the tenants in it, so that many clients cost no more than one.
    std::map<std::string, Text> stats_;
    std::chrono::steady_clock::time_point stats_time_;
};

}  // namespace rdmaquota
