#include "tools/rdmaquotad/grants/grants.hpp"

#include <algorithm>
#include <chrono>

#include <fmt/core.h>

#include "shm/policy/policy_lock.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/shares/divide.hpp"
#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {
namespace {

constexpr auto patience = std::chrono::milliseconds(20);  // for a command that divides
constexpr auto most_at_once = std::chrono::milliseconds(4);  // what others wait for the sidecar's one thread

bool same(const ShareDebt& a, const ShareDebt& b) {
    return a.tenant == b.tenant && a.device == b.device && a.resource == b.resource;
}

bool contains(const std::vector<ShareDebt>& debts, const ShareDebt& debt) {
    return std::any_of(debts.begin(), debts.end(), [&](const ShareDebt& other) { return same(other, debt); });
}

}  // namespace

void Grants::pass(const std::vector<std::string>& devices) {
    if (&devices != &devices_) devices_ = devices;
    const auto done = move_all(most_at_once);
    const auto error = done ? std::string() : done.error();
    if (error != said_ && !error.empty()) log(Priority::warning, error);
    said_ = error;
    tell();
}

Result<void> Grants::pass_at_once() {
    if (devices_.empty()) devices_ = policy_devices();
    auto done = move_all(ShareMover::Clock::duration::max());
    if (done) tell();
    return done;
}

// What others freed since all were read is found only when all are read again.
Result<bool> Grants::pass_for(std::string_view tenant) {
    if (devices_.empty()) devices_ = policy_devices();
    const auto asked = ShareMover::Clock::now();
    auto done = move(tenant, most_at_once);
    const bool raised = done && mover_.has_raised(tenant);
    if (done && !raised && asked >= next_) done = move_all(most_at_once);
    if (!done) return Error{done.error()};
    tell();
    return raised || has_read_all_since(asked);
}

void Grants::look_again() {
    if (ShareMover::Clock::now() >= next_) pass(devices_);
}

Result<void> Grants::move_all(ShareMover::Clock::duration most) {
    const auto begin = ShareMover::Clock::now();
    if (mover_.complete()) began_ = begin;
    reap(begin + most / 2);
    auto done = move({}, most);
    const auto end = ShareMover::Clock::now();
    next_ = end + 4 * (end - begin);
    if (mover_.complete()) read_began_ = began_;
    return done;
}

// Before somebody is denied: what ended programs left is not in use. Goes on where it stopped the last time.
void Grants::reap(ShareMover::Clock::time_point end) {
    const auto& tenants = node_.with_ledger();
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        auto& ledger = tenants[next_reaped_++ % tenants.size()]->ledger();
        if (!ledger.at_rest()) ledger.reap();
        if (ShareMover::Clock::now() >= end) return;
    }
}

Result<void> Grants::move(std::string_view only, ShareMover::Clock::duration most) {
    if (node_.is_own() || !node_.writable()) return {};
    const auto lock = PolicyLock::take(shares_path(node_.directory()), patience);
    if (!lock) return Error{lock.error()};
    members_.clear();
    for (auto& [key, tenant] : node_.tenants()) {
        tenant.refresh();
        if ((key == only || tenant.name() == only) && tenant.ledger().at_rest()) tenant.ledger().check();
        if (tenant.limits() != nullptr && !is_template(key))
            members_.push_back({key, tenant.name(), tenant.place().here, tenant.limits(), tenant.has_ledger(),
                                tenant.has_ledger() && tenant.ledger().at_rest()});
    }
    const auto before = mover_.moves();
    auto done = mover_.pass(members_, devices_, ShareMover::Wants::use, ShareMover::Clock::now(), only, most);
    if (mover_.moves() != before)
        for (auto& [key, tenant] : node_.tenants()) tenant.refresh();
    return done;
}

// Those for whom what one with a debt frees is earmarked: {TENANT: AMOUNT}.
Json Grants::earmarked_by(const ShareDebt& debt) const {
    Json result = Json::object();
    for (const auto& mark : earmarks())
        if (mark.device == debt.device && mark.resource == debt.resource) result[mark.tenant] = mark.amount;
    return result;
}

// Of debts that begin and end.
void Grants::tell() {
    const auto say = [&](const ShareDebt& debt, bool begins) {
        const auto what = fmt::format("{} on {}", info(debt.resource).name, debt.device);
        events_.emit(Priority::notice, begins ? SidecarKind("frozen") : SidecarKind("thawed"),
                     Json{{"tenant", debt.tenant},
                          {"device", debt.device},
                          {"resource", info(debt.resource).name},
                          {"used", debt.used},
                          {"share", debt.share},
                          {"earmarked", earmarked_by(debt)}},
                     begins ? fmt::format("tenant {} uses {} of {}, more than its share of {}, which others want: what it "
                                          "frees goes to them",
                                          debt.tenant, format_amount(debt.resource, debt.used), what,
                                          format_amount(debt.resource, debt.share))
                            : fmt::format("tenant {} uses no more than its share of {} again", debt.tenant, what));
    };
    for (const auto& debt : debts())
        if (!contains(told_, debt)) say(debt, true);
    for (const auto& debt : told_)
        if (!contains(debts(), debt)) say(debt, false);
    told_ = debts();
}

}  // namespace rdmaquota
