// rdmaquotad as a whole: makes its parts, connects them, and runs the loop.
#pragma once

#include <optional>
#include <string>

#include "tools/common/limit_changes.hpp"
#include "tools/rdmaquotad/serve/answers.hpp"
#include "tools/rdmaquotad/serve/control_socket.hpp"
#include "tools/rdmaquotad/dynamic/dynamic_limits.hpp"
#include "tools/rdmaquotad/history/history.hpp"
#include "tools/rdmaquotad/history/history_json.hpp"
#include "tools/rdmaquotad/bypass/bypass_monitor.hpp"
#include "tools/rdmaquotad/core/loop.hpp"
#include "tools/rdmaquotad/serve/metrics_server.hpp"
#include "tools/rdmaquotad/core/quota_directory.hpp"
#include "tools/rdmaquotad/core/node_events.hpp"

namespace rdmaquota {

class Daemon {
public:
    // `policy_file` is what `reload` and SIGHUP put in force.
    Daemon(std::string directory, std::string policy_file);

    // Until SIGTERM or SIGINT. Returns the exit status.
    int run();

private:
    void start();
    void tick();
    void new_policy();
    void sample();
    void save();
    Text history(const Request& request);
    std::uint64_t usage(const std::string& device, Resource resource) const;
    void relay_events();
    void update_status();
    std::string metrics();
    Result<std::string> reload();
    Json status() const;

    std::string policy_file_;
    Loop loop_;
    QuotaDirectory node_;
    NodeEvents events_;
    BypassMonitor kernel_;
    std::uint32_t metrics_port_ = 0;  // as the policy has it
    bool policy_is_new_ = false;
    std::string said_missing_;  // so that it is said once
    EventCursor next_event_;
    std::string said_status_;
    History history_;
    std::uint64_t sampled_at_ = 0, save_at_ = 0;  // CLOCK_REALTIME
    std::string said_unsaved_;
    std::optional<HistoryText> history_text_;  // until the next sample
    DynamicLimits dynamic_;
    Answers answers_;
    ControlSocket control_;
    MetricsServer metrics_;
    Loop::Source tick_;
    Loop::Source relay_;
    Loop::Source signals_[3];
};

}  // namespace rdmaquota
