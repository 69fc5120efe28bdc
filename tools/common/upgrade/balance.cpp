#include "tools/common/upgrade/balance.hpp"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <set>

#include <fmt/core.h>

#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/upgrade/old_ledger.hpp"
#include "tools/common/upgrade/old_policy.hpp"

namespace rdmaquota {
namespace {

using namespace upgrade;
using At = std::function<void(std::string_view)>;

class Balance {
public:
    Balance(std::string directory, OldPolicy& old, LimitsWriter& fresh, const At& at)
        : directory_(std::move(directory)), old_(old), fresh_(fresh), at_(at), nobody_(lock_out_owners(directory_)) {
        if (auto ledger = OldLedger::open(directory_)) ledger_ = std::move(*ledger);
        if (ledger_ && !nobody_) dead_ = ledger_->lock_dead();
    }

    Result<void> run() {
        freeze();
        if (auto held = hold_rest(); !held) return held;
        if (nobody_) remove_files();
        return {};
    }

private:
    std::uint64_t configured(std::string_view device, Resource resource) const {
        return fresh_.limits().configured(Scope::tenant, device, resource);
    }
    // By its own limit, or by what it may use of that of the node.
    bool is_bounded(std::string_view device, Resource resource) const {
        return configured(device, resource) != unlimited || fresh_.limits().granted(device, resource) != unset;
    }
    std::uint64_t limit(std::string_view device, Resource resource) const {
        return old_limit(old_.image(), Scope::tenant, device, resource);
    }
    void step(std::string_view name) const {
        if (at_) at_(name);
    }

    void read_gates();
    std::uint64_t in_use(std::string_view device, Resource resource) const;
    void freeze();
    void freeze_device(std::string_view device, Resource resource);
    Result<void> hold_rest();
    Result<void> hold_rest_of(std::string_view device, Resource resource);
    Result<void> hold(std::string_view device, Resource resource, std::uint64_t share);
    void remove_files();

    std::string directory_;
    OldPolicy& old_;
    LimitsWriter& fresh_;
    const At& at_;
    std::optional<NoOldOwners> nobody_;
    std::optional<OldLedger> ledger_;
    OldLedger::Dead dead_;
    UsageByDevice gates_;
    std::set<std::string, std::less<>> names_;  // devices, ports and "total": all that can have a limit or usage
};

// The ledger's devices and gates as of now.
void Balance::read_gates() {
    if (ledger_) gates_ = ledger_->gates();
    for (const auto& [device, amounts] : gates_) names_.insert(device);
}

// What ended processes left charged is in the gates, and is not in use. Without owners nothing is.
std::uint64_t Balance::in_use(std::string_view device, Resource resource) const {
    if (nobody_) return 0;
    const bool total = device == total_device;
    const auto gate = total ? total_in(gates_, resource) : amount_in(gates_, device, resource);
    const auto dead = total ? total_in(dead_.usage, resource) : amount_in(dead_.usage, device, resource);
    return gate - std::min(gate, dead);
}

// Lowers the old limits to what is in use. Devices come before "*", which stands for all that may still appear: they
// get nothing.
void Balance::freeze() {
    for (const auto& list : {old_.devices(), fresh_.limits().devices(Scope::tenant)})
        names_.insert(list.begin(), list.end());
    names_.insert(std::string(total_device));
    names_.erase(std::string(any_device));
    read_gates();
    for (const auto& device : names_)
        for (const auto& row : resource_table) freeze_device(device, row.id);
    for (const auto& row : resource_table)
        if (is_bounded(any_device, row.id)) old_.set(any_device, row.id, 0);
    old_.set_mode(fresh_.limits().mode());
    step("publish");
    old_.publish_changes();
    step("read");
    read_gates();
}

void Balance::freeze_device(std::string_view device, Resource resource) {
    const auto bound = configured(device, resource);
    const auto before = limit(device, resource);
    const bool under_any = !is_port(device) && device != total_device && is_bounded(any_device, resource);
    const bool bounded = is_bounded(device, resource);
    if (!bounded && !under_any) return;
    const auto after = bounded ? std::min({before, bound, in_use(device, resource)}) : before;
    if (after == before && !under_any) return;
    step("lower");
    old_.set(device, resource, after);
}

Result<void> Balance::hold_rest() {
    for (const auto& device : names_)
        for (const auto& row : resource_table)
            if (auto held = hold_rest_of(device, row.id); !held) return held;
    for (const auto& held : held_limits(fresh_.limits()))
        if (held.reason == Reason::upgrade && !names_.contains(held.device))
            fresh_.release(held.scope, held.device, held.resource);
    return {};
}

Result<void> Balance::hold_rest_of(std::string_view device, Resource resource) {
    const auto bound = configured(device, resource);
    const auto share = bound == unlimited ? 0 : std::max(limit(device, resource), in_use(device, resource));
    if (share != 0) return hold(device, resource, std::min(share, bound));
    if (load_reason(fresh_.limits().row(Scope::tenant, device), resource) != Reason::upgrade) return {};
    step("release");
    fresh_.release(Scope::tenant, device, resource);
    return {};
}

// A lower limit that a rule or a grant holds stays.
Result<void> Balance::hold(std::string_view device, Resource resource, std::uint64_t share) {
    const auto rest = configured(device, resource) - share;
    const auto effective = fresh_.limits().limit(Scope::tenant, device, resource);
    const auto reason = load_reason(fresh_.limits().row(Scope::tenant, device), resource);
    if (reason == Reason::upgrade ? effective == rest : reason != Reason::configured && effective <= rest) return {};
    step("hold");
    return fresh_.hold(
        Scope::tenant, device, resource, rest, Reason::upgrade,
        fmt::format("{} are used by programs of an older rdmaquota", format_amount(resource, share)));
}

// The policy goes last, since it says that there is something to do.
void Balance::remove_files() {
    std::error_code ignored;
    const auto policy = old_policy_path(directory_);
    step("remove");
    std::filesystem::remove_all(old_ledger_path(directory_), ignored);
    for (const auto& path : {directory_ + "/changed.json", policy + ".old", policy + ".tmp"}) ::unlink(path.c_str());
    step("remove policy");
    ::unlink((policy + ".lock").c_str());
    ::unlink(policy.c_str());
    old_.supersede();
}

}  // namespace

Result<void> balance_with_old(const std::string& directory, const std::function<void(std::string_view)>& at) {
    if (::access(old_policy_path(directory).c_str(), F_OK) != 0) return {};
    const auto limits = limits_path(here_path(directory));
    if (::access(limits.c_str(), F_OK) != 0) return {};  // no `reload` by this version yet
    auto old = OldPolicy::open(directory);
    if (!old) return Error{old.error()};
    if (!*old) return {};
    auto fresh = LimitsWriter::open(limits);
    if (!fresh) return Error{fresh.error()};
    return Balance(directory, **old, *fresh, at).run();
}

}  // namespace rdmaquota
