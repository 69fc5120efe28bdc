// The guard as the sidecar leads it: keeps its limits, says whose a device is, and tells what it refused. What refuses is
// in the kernel (kernel/bpf/guard_*.bpf.h), and goes on without the sidecar.
//
// One thread.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "policy/sidecar.hpp"
#include "tools/common/views/json_fwd.hpp"
#include "tools/rdmaquotad/loop/loop.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"
#include "tools/rdmaquotad/guard/guard_audit.hpp"
#include "tools/rdmaquotad/guard/guard_owners.hpp"
#include "tools/common/guard/guard_rows.hpp"

namespace rdmaquota {

class Guard {
public:
    Guard(Loop& loop, Node& node, NodeEvents& events, GuardOwners::MakeTenant make_tenant)
        : loop_(loop), node_(node), events_(events), make_tenant_(std::move(make_tenant)) {}

    // The program that is attached; null: none, or without the guard. Call it when that changes, and before it ends.
    void follow(GuardProgram* program);
    // Somebody has turned it off in the kernel, behind this process's back.
    bool was_turned_off() const noexcept { return turned_off_; }
    void set_mode(GuardMode mode);
    // What limits, tenants and devices are now.
    void update();

    bool is_on() const noexcept { return parts_.has_value(); }
    // Of tenants for which `sees` is true, by name.
    Json status(const std::function<bool(const std::string&)>& sees) const;
    struct Usage {
        std::string tenant, device;
        Resource resource;
        std::uint64_t amount, refused;
    };
    std::vector<Usage> usage() const;  // by the kernel's count, of what is used, limited or was refused
    // What the kernel counts, where it refuses what is too much.
    void add_uses(std::string_view tenant, std::vector<CountedUse>& uses) const {
        if (is_on() && mode_ == GuardMode::deny && kept_) parts_->rows.add_uses(tenant, uses);
    }
    struct Counts {
        std::uint64_t refused = 0, exceeded = 0, killed = 0;
    };
    Counts counts() const noexcept;
    GuardMode mode() const noexcept { return is_on() ? mode_ : GuardMode::off; }

private:
    struct Parts {
        GuardProgram& program;
        GuardRows rows;
        GuardOwners owners;
        GuardAudit audit;
        Loop::Source ready;
        bool has_new_rows = false;  // introduce_all() has not run since rows were added
        Parts(const Node& node, GuardProgram& its, const GuardOwners::MakeTenant& make_tenant)
            : program(its), rows(its.rows(), GuardNames(its.names())), owners(node, its, rows, make_tenant) {}
    };
    using Clock = std::chrono::steady_clock;
    std::string_view state() const;
    std::vector<std::string> problems() const;
    void keep();
    void take_events();
    using Unknown = std::map<std::tuple<u32, u32, u32>, guard_unknown>;  // by process, thread and device
    void introduce(const std::vector<guard_unknown>& asked);
    void introduce(const Unknown& unknown);
    void judge(u32 file);
    u64 times_of(const guard_event& event);
    void tell(const guard_event& event);
    void tell_killed(const guard_event& event);
    void apply_mode();
    bool rules_changed();

    Loop& loop_;
    Node& node_;
    NodeEvents& events_;
    GuardOwners::MakeTenant make_tenant_;
    GuardMode mode_ = GuardMode::off;
    std::optional<Parts> parts_;
    bool kept_ = false, turned_off_ = false;
    std::uint64_t policy_ = 0;  // id of the last one
    std::string rules_;         // by which all were introduced
    Counts counts_;
    // The same is told once a second at most, with how often it happened.
    struct Told {
        Clock::time_point when{};
        std::uint64_t more = 0;
    };
    std::map<std::pair<u32, u32>, u64> refused_;  // by row and resource: the row's refusals at its last event
    u64 refusals_before_ = 0;                     // the kernel's count when this process attached
    std::map<std::tuple<u32, u32, u32, u32>, Told> told_;
    std::string said_;  // why the kernel does not keep it
    std::size_t without_ = 0;
};

}  // namespace rdmaquota
