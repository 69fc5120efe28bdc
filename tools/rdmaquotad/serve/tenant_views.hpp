// Snapshots of tenants for answers: made when they are asked for, and kept until there is something new.
//
// Making one counts as a part of the look at the ledger (LookSchedule), so a ledger that takes long is shown as it was
// a while ago. Processes have their pids on this node, 0 where that is not known (yet). What is kept of all tenants is
// bounded; those with most processes lose them first.
//
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "tools/common/views/snapshot.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/serve/process_names.hpp"

namespace rdmaquota {

class TenantViews {
public:
    static constexpr std::chrono::milliseconds age{100};  // of what is in use
    static constexpr std::chrono::seconds age_at_rest{60};
    static constexpr std::chrono::milliseconds time_for_all{150};
    static constexpr std::size_t most_figures = 262'144;  // of processes, in all

    explicit TenantViews(Node& node) : node_(node) {}

    // All of them have limits. Valid until the next call. One without a ledger is the sum of those below it. Those
    // whose ledgers take long come last; when `time_for_all` is over, the rest is as it was, or without processes.
    std::vector<const TenantView*> of(const std::vector<Tenant*>& tenants);
    // What was changed is to be seen at once.
    void refresh() { kept_.clear(); }

private:
    using Clock = std::chrono::steady_clock;
    struct Kept {
        TenantView view;
        std::size_t figures = 0;
        Clock::time_point made;
        std::uint64_t limits = 0, generation = 0;  // id, and generation
        std::uint32_t ledger = 0;
        std::uint64_t claims = 0;
        ProcessNames::OfLedger names = {};
    };
    void update(Tenant& tenant, bool in_time);
    bool is_current(const Kept& kept, const Tenant& tenant) const;
    void make(Tenant& tenant, Kept& kept);
    TenantView sum(const Tenant& tenant);
    void forget_some();

    Node& node_;
    ProcessNames names_;
    std::map<std::string, Kept> kept_;  // by key
    std::size_t figures_ = 0;
};

}  // namespace rdmaquota
