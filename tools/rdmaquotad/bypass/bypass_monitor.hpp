// Everything that the daemon does with the kernel: reaps ended processes at once, compares ledgers and kernel and reports
// the differences, and bounds the cgroup of the tenant `default` where the policy asks for it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "policy/sidecar.hpp"
#include "tools/common/views/json_fwd.hpp"
#include "tools/rdmaquotad/bypass/bypass_detector.hpp"
#include "tools/rdmaquotad/bypass/churn.hpp"
#include "tools/rdmaquotad/bypass/process_tenants.hpp"
#include "tools/rdmaquotad/bypass/slot_holders.hpp"
#include "tools/rdmaquotad/kernel/backstop.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"
#include "tools/rdmaquotad/loop/loop.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"

namespace rdmaquota {

class BypassMonitor {
public:
    // `attached` is told before a program goes (null) and after one came.
    using Attached = std::function<void(GuardProgram*)>;
    BypassMonitor(Loop& loop, Node& node, NodeEvents& events, Attached attached);

    void start();
    void new_policy(const Sidecar& asked);
    void end();  // an orderly end: restores what was changed
    GuardProgram* guard() noexcept { return watch_ ? watch_->guard() : nullptr; }

    const std::vector<KernelUse>& uses() const noexcept { return uses_; }  // of the last look
    // Whether they have all of this kind that anyone makes, apart from what is partial.
    bool counts(Resource resource) const noexcept { return watch_ && watch_->attached() && watch_->knows(resource); }
    std::vector<Difference> bypasses() const { return detector_.bypasses(); }
    const std::vector<std::string>& blind() const noexcept { return watch_->blind(); }  // once started
    // Empty without the program in the kernel.
    const std::map<Churn::Place, Churn::Counts>& churn() const noexcept { return churn_.all(); }
    // The kernel's denials in that cgroup so far, by device; empty where the kernel does not count them.
    std::map<std::string, HcaCounts> denied() const;
    // Of the tenants for which `sees`, asked by key, is true.
    using Sees = std::function<bool(const std::string& tenant)>;
    Json bypasses_json(const Sees& sees) const;
    Json status(const Sees& sees) const;

private:
    void open_watch();
    void watch_events();
    void take_events();
    void look_soon();
    void look_twice();
    void look();
    bool compare();  // false: there is nothing to compare
    void follow_ledgers();
    SlotHolders::Held find_held(const std::set<std::string>& devices);
    void count_churn(const SlotHolders::Held& held);
    Observation observe(SlotHolders::Held held);
    void reap(const std::set<std::uint32_t>& pids);
    std::string name_of(const std::string& tenant) const;
    void emit(const BypassReport& report);
    void bound_tenant();
    void look_for_denials();
    void log_blind();
    Json bound_json(const std::string& group, const std::string& device) const;

    Loop& loop_;
    Node& node_;
    NodeEvents& events_;
    Attached attached_;
    Sidecar asked_;
    bool guarded_ = false;
    std::optional<KernelWatch> watch_;  // from `start` on, since loading takes a while
    Backstop backstop_;
    BypassDetector detector_;
    SlotHolders holders_;
    Churn churn_;
    std::vector<std::uint32_t> followed_;  // ledgers
    ProcessTenants tenants_;
    std::vector<KernelUse> uses_;
    using Clock = std::chrono::steady_clock;
    Clock::time_point looked_;
    Clock::duration took_{};  // the last look
    std::uint64_t looks_ = 0;  // complete comparisons of kernel and ledgers
    std::map<std::pair<std::string, std::string>, HcaCounts> denied_;  // by bounded group and device
    bool for_everyone_ = false;  // programs charge this directory by default
    int fd_ = -1;
    Loop::Source ready_, tick_, soon_;
    std::optional<std::vector<std::string>> said_blind_;
    std::string said_unbounded_, said_unread_;
};

Json to_json(const HcaCounts& counts);
Json to_json(const KernelUse& use);
// `tenant` is the name that is shown.
Json to_json(const Difference& difference, const std::string& tenant);

}  // namespace rdmaquota
