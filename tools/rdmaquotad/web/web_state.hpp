// What the page shows, as JSON: compact, since there may be 500 tenants with 8 devices each, every second.
//
//   {"time": MS, "host": NAME, "version": V, "all": true,          all: of every tenant
//    "resources": [[NAME, "count" | "bytes", WORDS], ...],          cells name them by place, and devices too
//    "rates": [[NAME, "count" | "bytes", WORDS], ...], "devices": [NAME, ...], "node": {...},
//    "tenants": [{"name", "parent", "mode", "weight", "processes", "sum", "cells": [CELL, ...], "rates": [RATE, ...]}, ...],
//    "top": [[DEVICE, RESOURCE, TENANT, PID, COMM, USED, USER, CONTAINER_PID], ...],     processes that use most, of each; PID is
//                                                                    null where the node's is not known
//    "events": [...], "bypasses": [...], "refused": [[TENANT, DEVICE, RESOURCE, COUNT], ...],
//    "capacity": [[DEVICE, RESOURCE, MOST], ...],                        what a device can have, where that is known
//    "churn": [[TENANT, DEVICE, RESOURCE, CREATED, DESTROYED], ...]}     a second, as the kernel counts
//   CELL: [DEVICE, RESOURCE, used, limit, configured, guarantee, soft, grace_left_s, peak, debt, earmarked, reason]
//   RATE: [DEVICE, RATE, limit, configured, burst, delayed_calls, delayed_ms, reason]
//
// One thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tools/common/views/json_fwd.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"
#include "tools/rdmaquotad/dynamic/device_capacity.hpp"
#include "tools/rdmaquotad/serve/tenant_views.hpp"
#include "tools/rdmaquotad/serve/visibility.hpp"
#include "tools/rdmaquotad/web/churn_rates.hpp"
#include "tools/rdmaquotad/web/doctor_findings.hpp"
#include "tools/rdmaquotad/web/recent_events.hpp"
#include "tools/rdmaquotad/web/user_names.hpp"

namespace rdmaquota {

class WebState {
public:
    static constexpr std::chrono::milliseconds age{400};  // viewers of the same share one text for so long
    static constexpr std::size_t most_events = 100, most_processes = 500, most_top = 5;

    using Sees = std::function<bool(const std::string& tenant)>;
    // All of it outlives this.
    struct Sources {
        Node& node;
        TenantViews& views;
        Visibility& visibility;
        const NodeEvents& events;
        const RecentEvents& recent;
        const DeviceCapacity& capacity;
        const ChurnRates& churn;
        DoctorFindings& findings;
        std::function<Json(const Sees& by_key)> bypasses;
        std::function<Json(const Sees& by_name)> guard;
        std::function<Json()> about;  // the node's part, for everyone
    };
    explicit WebState(Sources sources) : sources_(std::move(sources)) {}

    Text text(const Peer& viewer);
    // One tenant with its processes, as `stats` has it, or with the one of this pid; null where the viewer sees none of that
    // name. pid 0: all, of which the first `most_processes` are there.
    Text tenant(const Peer& viewer, const std::string& name, std::uint32_t pid);

private:
    std::vector<Tenant*> seen_by(const Peer& viewer);
    std::string make(const Peer& viewer, const std::vector<Tenant*>& tenants);
    std::string events(const Peer& viewer);
    Json about(const Peer& viewer, Json guard);
    Json churn(const Peer& viewer);
    Json capacity() const;

    Sources sources_;
    UserNames users_;
    using Clock = std::chrono::steady_clock;
    std::map<std::string, Text> texts_;  // by who sees what
    Clock::time_point made_{};
};

}  // namespace rdmaquota
