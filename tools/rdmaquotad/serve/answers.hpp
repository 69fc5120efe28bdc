// Answers the requests of the control socket; rdmaquotad(8) describes both.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "tools/common/json_fwd.hpp"
#include "tools/common/snapshot.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"
#include "tools/rdmaquotad/core/quota_directory.hpp"
#include "tools/rdmaquotad/core/node_events.hpp"
#include "tools/rdmaquotad/serve/request.hpp"

namespace rdmaquota {

class Answers {
public:
    // Where the answers come from. All of it outlives this.
    struct Sources {
        QuotaDirectory& node;
        const NodeEvents& events;
        std::function<Json()> status;            // of the daemon
        std::function<Json()> bypasses;          // at present
        std::function<Text(const Request&)> history;
        std::function<Result<std::string>()> reload;  // returns what it did
    };
    explicit Answers(Sources sources) : sources_(std::move(sources)) {}

    Answer answer(const Peer& peer, std::string_view line);

private:
    Result<Json> give(const Peer& peer, const Request& request);
    const TenantView& snapshot();
    Json stats();
    Result<Json> process(std::uint32_t pid);
    Json events(std::uint64_t since) const;
    Result<Json> set(const Peer& peer, const Request& request);
    Text cached_stats();

    Sources sources_;
    std::optional<TenantView> snapshot_;
    Text stats_;  // of the snapshot
    std::chrono::steady_clock::time_point snapshot_time_;
};

}  // namespace rdmaquota
