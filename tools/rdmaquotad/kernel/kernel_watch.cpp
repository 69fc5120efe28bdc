#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <ctime>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "tools/common/boot_clock.hpp"
#include "tools/common/devices.hpp"
#include "tools/rdmaquotad/loop/loop.hpp"
#include "tools/rdmaquotad/kernel/kernel_program.hpp"

namespace rdmaquota {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::time_t seconds_between_tries = 10;
constexpr std::time_t seconds_between_guard_tries = 60;
constexpr std::chrono::seconds rest_after_search{5};

// Of a kind of object in the kernel; none for those that count as hca_object alone.
std::optional<Resource> resource_of(unsigned kind) {
    using enum Resource;
    switch (kind) {
        case kind_handle:
            return hca_handle;
        case kind_pd:
            return pd;
        case kind_cq:
            return cq;
        case kind_qp:
            return qp;
        case kind_srq:
            return srq;
        case kind_ah:
            return ah;
        case kind_mr:
            return mr;
        case kind_mw:
            return mw;
        case kind_flow:
            return flow;
        case kind_xrcd:
            return xrcd;
        case kind_rwq_ind:
            return rwq_ind;
        case kind_wq:
            return wq;
        case kind_dm:
            return dm;
        case kind_counters:
            return counters;
        default:
            return std::nullopt;
    }
}

// For figures that were not read at one instant, and may overlap for a moment.
std::uint64_t difference(std::uint64_t all, std::uint64_t part) { return all > part ? all - part : 0; }

// Who opened a file before the program ran is not known: the entry is of the first process that made an object by it.
// So the open device is not counted for anyone there; netlink lists it.
void add(KernelUse& use, const kernel_use& counts, bool open, bool whole) {
    for (unsigned kind = 0; kind < kind_count; ++kind) {
        const bool known = open && (whole || kind != kind_handle);
        const auto live = known ? difference(counts.created[kind], counts.destroyed[kind]) : 0;
        const auto count = [&](Resource resource) {
            use.created[index(resource)] += counts.created[kind];
            use.destroyed[index(resource)] += counts.destroyed[kind];
            use.live[index(resource)] += live;
        };
        if (const auto resource = resource_of(kind)) count(*resource);
        if (kind != kind_handle) count(Resource::hca_object);
        if (kind == kind_driver) use.driver_objects += live;
    }
    if (!open) return;
    use.live[index(Resource::mr_bytes)] += counts.mr_bytes;
    use.live[index(Resource::dm_bytes)] += counts.dm_bytes;
}

using ProcessDevice = std::pair<std::uint32_t, std::string>;
using Key = std::tuple<std::uint32_t, std::string, std::uint32_t>;  // process, device, opener
using Uses = std::map<Key, KernelUse>;

ProcessDevice place_of(const kernel_use& use) {
    return {use.pid, UverbsDevices::now().name(uverbs_identity(use.uverbs))};
}

KernelUse& use_of(Uses& uses, std::uint32_t pid, const std::string& device, std::uint32_t opener) {
    auto& use = uses[{pid, device, opener}];
    use.pid = pid;
    use.device = device;
    use.opener = opener;
    return use;
}

// Corrects counts by what netlink lists. That is all that the process holds on the device, but for what threads made
// that have ended: there is at least what either of the two knows. Only netlink knows the bytes of MRs that changed
// their length; without `all`, nothing else is corrected. Other counts stay.
void correct(Uses& uses, const NetlinkUse& listed, bool all, bool bytes_changed, bool stale) {
    auto& own = use_of(uses, listed.pid, listed.device, listed.pid);
    const auto others = [&](Resource resource) {
        std::uint64_t sum = 0;
        for (const auto& [key, use] : uses)
            if (use.pid == own.pid && use.opener != own.opener && use.device == own.device)
                sum += use.live[index(resource)];
        return sum;
    };
    std::uint64_t objects = 0;
    for (const auto& row : resource_table) {
        const bool bytes = row.id == Resource::mr_bytes;
        if (!in_netlink(row.id) || (!all && !bytes)) continue;
        auto& live = own.live[index(row.id)];
        const auto rest = difference(listed.live[index(row.id)], others(row.id));
        live = bytes && bytes_changed ? rest : std::max(live, rest);
        if (row.unit == Unit::count && row.id != Resource::hca_handle) objects += live;
    }
    own.stale = stale;
    if (!all) return;
    own.partial = true;
    auto& every = own.live[index(Resource::hca_object)];
    every = std::max(every, objects);
}

}  // namespace

struct KernelWatch::State {
    std::optional<KernelProgram> program;
    bool guarded = false;
    std::vector<std::string> blind;
    std::time_t tried = 0;
    std::uint64_t lost = 0, missed = 0, unseen = 0;
    std::vector<NetlinkUse> listing;
    Clock::time_point due, search;
    bool unlisted = false;            // netlink was not asked since something was lost
    std::set<ProcessDevice> listed;   // had a device open before the program ran: netlink's figures are used
    std::set<ProcessDevice> doubted;  // used a device when a call was missed: their counts may be too high
    std::set<std::uint32_t> ended;    // not yet forgotten
    Uses totals;                      // of those who were
    std::uint64_t since = UINT64_MAX;

    void attach() {
        tried = std::time(nullptr);
        blind.clear();
        auto attached = KernelProgram::attach(blind, guarded);
        if (!attached && guarded) {
            const auto why = fmt::format("there is no guard: {}", attached.error());
            attached = KernelProgram::attach(blind, false);
            blind.push_back(why);
        }
        if (!attached)
            return blind.push_back(fmt::format(
                "{}: only what netlink lists is known (hca_handle, pd, cq, qp, mr, mr_bytes, srq), and the end of a "
                "process is not seen",
                attached.error()));
        adopt(std::move(*attached));
    }

    void adopt(KernelProgram attached) {
        program.emplace(std::move(attached));
        list_all();
        due = {};
        (void)list_when_due();
        due = {};
    }

    // The counts go on with a new program, whose first list has what there is.
    void attach_guard() {
        tried = std::time(nullptr);
        std::vector<std::string> unseen;
        auto attached = KernelProgram::attach(unseen, true);
        if (!attached) return;
        blind = std::move(unseen);
        adopt(std::move(*attached));
    }

    void attach_what_is_missing() {
        const bool lacks_guard = program && guarded && !program->guard();
        if (program && !lacks_guard) return;
        if (std::time(nullptr) - tried < (lacks_guard ? seconds_between_guard_tries : seconds_between_tries)) return;
        const LongStep step;
        if (lacks_guard) attach_guard();
        else attach();
    }

    // From the next listing on, netlink's figures are used for every process in it.
    void list_all() {
        since = ticks_since_boot() + 1;
        unlisted = true;
    }

    void forget_ended() {
        for (auto pid = ended.begin(); pid != ended.end();) {
            if (!has_ended(*pid)) {
                ++pid;
                continue;
            }
            for (const auto& total : program->tables().forget(*pid))
                add(use_of(totals, total.pid, place_of(total).second, total.opener), total, false, true);
            pid = ended.erase(pid);
        }
    }

    // Looks for ended processes that no event told of, or that made something after it. A system call for each.
    void find_ended(const std::vector<KernelEntry>& entries) {
        if (Clock::now() < search) return;
        search = Clock::now() + rest_after_search;
        for (const auto pid : program->tables().holders())
            if (has_ended(pid)) ended.insert(pid);
        for (const auto& entry : entries)
            if (!entry.open && has_ended(entry.use.pid)) ended.insert(entry.use.pid);
    }

    // Counts what the guard has not seen, at once, before others use the room.
    void list_unseen() {
        const auto now = program->missed() + program->late();
        const bool none = std::exchange(unseen, now) == now && program->tells_misses();
        if (none || !program->guard()) return;
        if (const auto listed = program->guard()->list_again(); !listed) unseen = UINT64_MAX;  // next time
    }

    // `old` gets those who use a file that was opened before the program ran, `bytes` those whose MRs may have changed
    // their length.
    Uses count(std::set<ProcessDevice>& old, std::set<ProcessDevice>& bytes) {
        const auto now_missed = program->missed();
        const auto entries = program->tables().read();
        find_ended(entries);
        doubt(entries, now_missed);
        Uses uses;
        for (const auto& [counts, open, whole, reregistered] : entries) {
            const auto device = place_of(counts).second;
            auto& use = use_of(uses, counts.pid, device, counts.opener);
            use.cgroup = counts.cgroup;
            add(use, counts, open, whole);
            use.partial |= open && !whole;
            if (open && !whole) old.emplace(counts.pid, device);
            if (open && reregistered) bytes.emplace(counts.pid, device);
        }
        for (auto& [key, use] : uses)
            if (doubted.contains({use.pid, use.device})) distrust(use, old);
        return uses;
    }

    // A missed end leaves a count too high until the file is closed.
    void doubt(const std::vector<KernelEntry>& entries, std::uint64_t now_missed) {
        const bool all = std::exchange(missed, now_missed) != now_missed;
        std::set<ProcessDevice> still;
        for (const auto& entry : entries)
            if (const auto place = place_of(entry.use); entry.open && (all || doubted.contains(place)))
                still.insert(place);
        doubted = std::move(still);
    }

    // Leaves what netlink lists.
    static void distrust(KernelUse& use, std::set<ProcessDevice>& old) {
        use.live = {};
        use.driver_objects = 0;
        use.partial = true;
        old.emplace(use.pid, use.device);
    }

    // Listing may take a tenth of the time.
    Result<bool> list_when_due() {
        const auto begin = Clock::now();
        if (begin < due) return false;
        auto found = netlink_snapshot();
        if (!found) return Error{found.error()};
        listing = std::move(*found);
        due = Clock::now() + 10 * (Clock::now() - begin) - std::chrono::milliseconds(1);
        if (std::exchange(unlisted, false))
            for (const auto& use : listing) listed.emplace(use.pid, use.device);
        return true;
    }

    bool needs_listing(const std::set<ProcessDevice>& bytes) const {
        return !program || !bytes.empty() || !listed.empty();
    }

    // What netlink does not list stays as counted, which is a lower bound.
    Result<void> correct_all(Uses& uses, const std::set<ProcessDevice>& old, std::set<ProcessDevice> bytes) {
        const auto fresh = list_when_due();
        if (!fresh && needs_listing(bytes)) return Error{fresh.error()};
        if (!fresh) return {};
        listed.insert(old.begin(), old.end());
        std::set<ProcessDevice> still;
        for (const auto& use : listing) {
            const ProcessDevice place{use.pid, use.device};
            const bool all = !program || listed.contains(place), changed = bytes.erase(place) != 0;
            if (all) still.insert(place);
            if (all || changed) correct(uses, use, all, changed, !*fresh);
        }
        for (const auto& [pid, device] : bytes) use_of(uses, pid, device, pid).stale = true;
        listed = std::move(still);
        return {};
    }
};

KernelWatch KernelWatch::open(bool guarded) {
    auto state = std::make_unique<State>();
    state->guarded = guarded;
    state->attach();
    return KernelWatch(std::move(state));
}

KernelWatch::KernelWatch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
KernelWatch::KernelWatch(KernelWatch&&) noexcept = default;
KernelWatch& KernelWatch::operator=(KernelWatch&&) noexcept = default;
KernelWatch::~KernelWatch() = default;

const std::vector<std::string>& KernelWatch::blind() const noexcept { return state_->blind; }
std::uint64_t KernelWatch::since() const noexcept { return state_->since; }
std::uint64_t KernelWatch::missed() const noexcept { return attached() ? state_->program->missed() : 0; }
bool KernelWatch::attached() const noexcept { return state_->program.has_value(); }
GuardProgram* KernelWatch::guard() noexcept { return attached() ? state_->program->guard() : nullptr; }
int KernelWatch::fd() const noexcept { return attached() ? state_->program->fd() : -1; }

bool KernelWatch::knows(Resource resource) const noexcept {
    using enum Resource;
    if (!attached()) return in_netlink(resource);
    if (resource == hca_object || info(resource).unit == Unit::bytes) return true;
    for (unsigned kind = 0; kind < kind_count; ++kind)
        if (resource_of(kind) == resource) return true;
    return false;
}

std::vector<KernelEvent> KernelWatch::poll() {
    std::vector<KernelEvent> events;
    if (!attached()) return events;
    for (const auto& event : state_->program->events()) {
        events.push_back({event.ended ? KernelEvent::Kind::ended : KernelEvent::Kind::opened, event.pid});
        if (event.ended) state_->ended.insert(event.pid);
    }
    return events;
}

std::vector<KernelUse> KernelWatch::take_ended() {
    std::vector<KernelUse> totals;
    for (auto& [key, use] : std::exchange(state_->totals, {})) totals.push_back(std::move(use));
    return totals;
}

Result<std::vector<KernelUse>> KernelWatch::snapshot() {
    auto& state = *state_;
    state.attach_what_is_missing();
    Uses uses;
    std::set<ProcessDevice> old, bytes;
    if (attached()) {
        state.forget_ended();
        if (const auto lost = state.program->lost(); std::exchange(state.lost, lost) != lost) state.list_all();
        state.list_unseen();
        uses = state.count(old, bytes);
    }
    if (state.unlisted || !old.empty() || state.needs_listing(bytes))
        if (auto corrected = state.correct_all(uses, old, bytes); !corrected) return Error{corrected.error()};
    std::vector<KernelUse> found;
    for (auto& [key, use] : uses) found.push_back(std::move(use));
    return found;
}

}  // namespace rdmaquota
