#include "tools/rdmaquotad/bypass/bypass_detector.hpp"

#include <utility>

#include "tools/rdmaquotad/kernel/backstop.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t most_reports = 32;  // of one look
constexpr unsigned longest_wait = 6;      // looks

// What makes one excess comparable with another: objects, and pages of memory.
std::uint64_t weight(Resource resource, std::uint64_t amount) {
    return info(resource).unit == Unit::bytes ? (amount + 4095) / 4096 : amount;
}

// Objects of a driver's own kinds (DEVX) may have been charged as what they stand for, or not at all, such as
// libmlx5's doorbell pages: between these two figures the ledger is right.
std::pair<std::uint64_t, std::uint64_t> right_amounts(Resource resource, std::uint64_t kernel,
                                                      std::uint64_t driver_objects) {
    if (driver_objects == 0) return {kernel, kernel};
    if (resource == Resource::hca_object) return {more(kernel, driver_objects), kernel};
    if (resource == Resource::hca_handle) return {kernel, kernel};
    return {kernel, info(resource).unit == Unit::bytes ? max_amount : kernel + driver_objects};
}

}  // namespace

void BypassDetector::add_amounts(Watched& watched, const GroupCounts& counts, const Observation& observation) {
    for (const auto& row : resource_table) {
        const auto i = index(row.id);
        const bool believed = !counts.partial || (in_netlink(row.id) && row.id != Resource::mr_bytes);
        const bool known = observation.known[i] && believed;
        // At least what is listed is there.
        const bool least_known = known || (counts.partial && row.id == Resource::hca_object);
        const bool lists_all = !counts.partial || row.id != Resource::qp;  // not a further handle of a shared XRC QP
        const bool most_known = known && lists_all && counts.oldest >= observation.complete_since;
        const auto [least, most] = right_amounts(row.id, counts.kernel[i], counts.driver_objects);
        watched.window.set(row.id, {least_known ? more(least, counts.ending[i]) : 0, most_known ? most : UINT64_MAX,
                                    counts.ledger[i]});
    }
}

void BypassDetector::add_look(Watched& watched, const GroupCounts& counts, const Observation& observation) {
    watched.seen = true;
    if (counts.stale) return;  // nothing new is known
    const bool same = watched.kernel == counts.kernel && watched.ledger == counts.ledger &&
                      watched.activity == counts.activity;
    watched.window.begin(observation.at, same);
    const bool slotless = !counts.has_slot && counts.ledger[index(Resource::hca_handle)] == 0;
    const bool was_slotless = std::exchange(watched.slotless, slotless);
    const auto openings = std::exchange(watched.openings, counts.openings);
    watched.partial = counts.partial;
    watched.activity = counts.activity;
    watched.difference.pid = counts.pid;
    watched.difference.comm = counts.comm;
    watched.difference.tenant = counts.tenant;
    watched.difference.has_slot = !slotless;
    watched.kernel = counts.kernel;
    watched.ledger = counts.ledger;
    add_amounts(watched, counts, observation);
    const auto handle = index(Resource::hca_handle);
    const bool open = observation.attached && counts.kernel[handle] > counts.ending[handle];
    if (open && slotless && was_slotless && openings == counts.openings) watched.window.confirm();
}

Difference BypassDetector::difference(const Watched& watched, bool bypass) {
    auto difference = watched.difference;
    difference.cgroup = cgroup_of(difference.pid);
    for (const auto& row : resource_table) {
        const auto lasting = bypass ? watched.window.bypass(row.id) : watched.window.leak(row.id);
        if (lasting != 0)
            difference.amounts.push_back({row.id, watched.kernel[index(row.id)], watched.ledger[index(row.id)]});
    }
    return difference;
}

// Whether a new difference is to be reported now. The resources of a process that changes reach their thresholds in
// different looks; a report waits until nothing changed for the whole window, so that it names all of them, but not
// for ever.
bool BypassDetector::is_due(unsigned& waited, bool differs, bool at_rest) {
    if (differs && !at_rest && waited < longest_wait) {
        ++waited;
        return false;
    }
    waited = 0;
    return differs;
}

void BypassDetector::judge(Watched& watched, std::vector<BypassReport>& reports) {
    std::uint64_t bypassed = 0;
    bool leaked = false;
    for (const auto& row : resource_table) {
        // Kind after kind is listed, each at another moment, so that their sum may be more than there ever was.
        if (!watched.partial || row.id != Resource::hca_object)
            bypassed += weight(row.id, watched.window.bypass(row.id));
        leaked |= watched.window.leak(row.id) != 0;
    }
    const bool grown = bypassed != 0 && (watched.reported == 0 || bypassed >= 2 * watched.reported);
    if (is_due(watched.bypass_waited, grown, watched.window.bypass_at_rest())) {
        reports.push_back({BypassReport::Kind::bypass, difference(watched, true)});
        watched.reported = bypassed;
    }
    if (bypassed == 0 && std::exchange(watched.reported, 0) != 0)
        reports.push_back({BypassReport::Kind::bypass_ended, watched.difference});
    if (is_due(watched.leak_waited, leaked && !watched.leak_reported, watched.window.leak_at_rest())) {
        reports.push_back({BypassReport::Kind::leak, difference(watched, false)});
        watched.leak_reported = true;
    }
    if (!leaked && std::exchange(watched.leak_reported, false))
        reports.push_back({BypassReport::Kind::leak_ended, watched.difference});
}

std::vector<BypassReport> BypassDetector::look(const Observation& observation) {
    const auto counts = groups_.read(observation);
    for (auto& [place, watched] : watched_) watched.seen = false;
    for (const auto& [place, of_group] : counts) {
        auto& watched = watched_[place];
        watched.difference.device = place.second;
        add_look(watched, of_group, observation);
    }
    std::vector<BypassReport> reports;
    for (auto& [place, watched] : watched_) {
        if (!watched.seen) watched.window.begin(observation.at, false);
        if (reports.size() < most_reports) judge(watched, reports);
    }
    std::erase_if(watched_, [](const auto& entry) {
        const auto& watched = entry.second;
        return !watched.seen && watched.reported == 0 && !watched.leak_reported;
    });
    return reports;
}

std::vector<Difference> BypassDetector::bypasses() const {
    std::vector<Difference> now;
    for (const auto& [place, watched] : watched_)
        if (watched.reported != 0) now.push_back(difference(watched, true));
    return now;
}

}  // namespace rdmaquota
