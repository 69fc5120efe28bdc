// rdmaquotad as a whole: makes its parts, connects them, and runs the loop.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/rdmaquotad/bypass/bypass_monitor.hpp"
#include "tools/rdmaquotad/node/instances.hpp"
#include "tools/rdmaquotad/node/soft_limits.hpp"
#include "tools/rdmaquotad/loop/loop.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"
#include "tools/rdmaquotad/node/unknown_names.hpp"
#include "tools/rdmaquotad/dynamic/capacity_file.hpp"
#include "tools/rdmaquotad/dynamic/dynamic_limits.hpp"
#include "tools/rdmaquotad/dynamic/percentages.hpp"
#include "tools/rdmaquotad/grants/cluster_ceilings.hpp"
#include "tools/rdmaquotad/grants/grants.hpp"
#include "tools/rdmaquotad/guard/guard.hpp"
#include "tools/rdmaquotad/history/history_keeper.hpp"
#include "tools/rdmaquotad/metrics/metrics_listener.hpp"
#include "tools/rdmaquotad/metrics/metrics_page.hpp"
#include "tools/rdmaquotad/metrics/node_metrics.hpp"
#include "tools/rdmaquotad/serve/answers.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"
#include "tools/rdmaquotad/serve/event_relay.hpp"
#include "tools/rdmaquotad/serve/tenant_sockets.hpp"
#include "tools/rdmaquotad/web/churn_rates.hpp"
#include "tools/rdmaquotad/web/doctor_findings.hpp"
#include "tools/rdmaquotad/web/recent_events.hpp"
#include "tools/rdmaquotad/web/web_page.hpp"
#include "tools/rdmaquotad/web/web_state.hpp"

namespace rdmaquota {

class Daemon {
public:
    explicit Daemon(std::string directory);

    // Until SIGTERM or SIGINT. Returns the exit status.
    int run();

private:
    void start();
    void tick();
    void refresh();
    void new_policy();
    void tell_of_ledgers();
    void look_after_tenants();
    Result<std::string> guard_off();
    Sidecar without_guard() const;
    Json guard_status(const Answers::Sees& sees) const;
    Result<std::function<bool()>> grant(const std::string& tenant);
    void serve_askers();
    std::function<bool()> ask_cluster(const std::string& tenant);
    bool make_tenant(const ProcessSubject& subject);
    Result<void> divide();
    void update_status();
    void follow_devices();
    void listen_for_metrics();
    void listen_for_browsers();
    Result<Json> web_address(const Peer& peer, bool renewed);
    Json status(const Answers::Sees& sees) const;

    Loop loop_;
    Node node_;
    NodeEvents events_;
    Guard guard_;
    BypassMonitor kernel_;
    Sidecar asked_;  // as the policy has it
    std::optional<std::uint64_t> policy_;  // id of the one that is followed; 0: none, in a directory of a tenant's own
    std::optional<std::string> said_missing_;          // so that it is said once
    std::map<std::string, std::string> said_unusable_;  // the same of ledgers, by their tenants' names
    std::string said_status_, said_uncompiled_, said_unheard_, said_ceilings_;
    HistoryKeeper history_;
    DynamicLimits dynamic_;
    SoftLimits soft_limits_;
    Grants grants_;
    ClusterCeilings ceilings_;
    Instances instances_;
    UnknownNames unknown_names_;
    UverbsDevices devices_;  // as of the last round
    std::uint64_t ticks_ = 0;
    TenantViews views_;
    Visibility visibility_;
    Answers answers_;
    ControlSocket control_;
    TenantSockets tenant_sockets_;
    EventRelay relay_events_;
    RecentEvents recent_;
    DeviceCapacity capacity_;
    CapacityFile capacity_file_;
    Percentages percentages_;
    ChurnRates churn_;
    DoctorFindings findings_;
    WebState web_state_;
    WebPage web_page_;
    NodeMetrics node_metrics_;
    MetricsPage metrics_page_;
    HttpServer metrics_, web_;
    Loop::Source tick_;
    Loop::Source relay_, shares_, askers_;
    Loop::Source signals_[2];
};

}  // namespace rdmaquota
