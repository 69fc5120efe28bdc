// The daemon's side towards the kernel: gives back at once what an ended process held, keeps ledger and kernel in
// agreement, and bounds the tenant's cgroup where the policy asks for it. What it finds goes to the events.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "policy/sidecar.hpp"
#include "tools/common/json.hpp"
#include "tools/rdmaquotad/bypass/bypass_detector.hpp"
#include "tools/rdmaquotad/kernel/backstop.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"
#include "tools/rdmaquotad/core/loop.hpp"
#include "tools/rdmaquotad/core/quota_directory.hpp"
#include "tools/rdmaquotad/core/node_events.hpp"

namespace rdmaquota {

class BypassMonitor {
public:
    BypassMonitor(Loop& loop, QuotaDirectory& node, NodeEvents& events);

    void start();
    void new_policy(const SidecarPolicy& asked);
    void end();  // orderly: what was changed is put back

    const std::vector<KernelUse>& uses() const noexcept { return uses_; }  // of the last look
    std::vector<Difference> bypasses() const { return detector_.bypasses(); }
    // What the kernel denied the tenant's cgroup so far, by device; nothing where it does not tell.
    std::map<std::string, HcaCounts> denied() const;
    Json bypasses_json() const;
    Json status() const;

private:
    void watch_events();
    void take_events();
    void look_soon();
    void look_twice();
    void look();
    bool compare();  // false: there is nothing to compare
    void tell(const Finding& finding);
    void bound_tenant();
    void look_for_denials();
    void say_blind();
    Json bound_json(const std::string& group, const std::string& device) const;

    Loop& loop_;
    QuotaDirectory& node_;
    NodeEvents& events_;
    Sidecar asked_;
    std::optional<KernelWatch> watch_;  // from `start` on: it takes a while to load
    Backstop backstop_;
    BypassDetector detector_;
    std::vector<KernelUse> uses_;
    using Clock = std::chrono::steady_clock;
    Clock::time_point looked_;
    std::map<std::pair<std::string, std::string>, HcaCounts> denied_;  // by bounded group and device
    bool for_everyone_ = false;  // the directory is that which programs charge by default
    int fd_ = -1;
    Loop::Source ready_, tick_, soon_;
    std::optional<std::vector<std::string>> said_blind_;
    std::string said_unbounded_, said_unread_;
};

Json to_json(const HcaCounts& counts);
Json to_json(const KernelUse& use);
Json to_json(const Difference& difference);

}  // namespace rdmaquota
