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
#include "tools/rdmaquotad/kernel/kernel_program.hpp"

namespace rdmaquota {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::time_t seconds_between_tries = 10;
constexpr std::chrono::seconds rest_after_search{5};

// By kind of object in the kernel, except for those that count as hca_object alone.
std::optional<Resource> resource_of(unsigned kind) {
    using enum Resource;
    switch (kind) {
        case kind_handle: return hca_handle;
        case kind_pd: return pd;
        case kind_cq: return cq;
        case kind_qp: return qp;
        case kind_srq: return srq;
        case kind_ah: return ah;
        case kind_mr: return mr;
        case kind_mw: return mw;
        case kind_flow: return flow;
        case kind_xrcd: return xrcd;
        case kind_rwq_ind: return rwq_ind;
        case kind_wq: return wq;
        case kind_dm: return dm;
        case kind_counters: return counters;
        default: return std::nullopt;
    }
}

// The kernel counts creation and destruction apart, and they are not read at one instant.
std::uint64_t difference(std::uint64_t made, std::uint64_t gone) { return made > gone ? made - gone : 0; }

void add(KernelUse& use, const kernel_use& counts, bool open) {
    for (unsigned kind = 0; kind < kind_count; ++kind) {
        const auto live = open ? difference(counts.created[kind], counts.destroyed[kind]) : 0;
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

using CgroupDevice = std::pair<std::uint32_t, std::string>;                        // process and device
using Key = std::tuple<std::uint32_t, std::string, std::uint32_t>;          // and opener
using Uses = std::map<Key, KernelUse>;

KernelUse& use_of(Uses& uses, std::uint32_t pid, const std::string& device, std::uint32_t opener) {
    auto& use = uses[{pid, device, opener}];
    use.pid = pid;
    use.device = device;
    use.opener = opener;
    return use;
}

// Netlink's word for what it lists, over all that the process holds on the device; the rest stays as counted.
void correct(Uses& uses, const NetlinkUse& listed, bool bytes_only, bool stale) {
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
        if (!in_netlink(row.id) || (bytes_only && row.id != Resource::mr_bytes)) continue;
        own.live[index(row.id)] = difference(listed.live[index(row.id)], others(row.id));
        if (row.unit == Unit::count && row.id != Resource::hca_handle) objects += own.live[index(row.id)];
    }
    own.stale = stale;
    if (bytes_only) return;
    own.partial = true;
    auto& all = own.live[index(Resource::hca_object)];
    all = std::max(all, objects);
}

}  // namespace

struct KernelWatch::State {
    std::optional<KernelProgram> program;
    std::vector<std::string> blind;
    std::time_t tried = 0;
    std::uint64_t lost = 0;
    std::vector<NetlinkUse> listing;
    Clock::time_point due, search;
    bool unlisted = false;        // netlink was not asked since something was lost
    std::set<CgroupDevice> listed;       // whose figures are netlink's: they had a device open before the program ran
    std::set<std::uint32_t> ended;  // not yet forgotten
    std::uint64_t since = UINT64_MAX;

    void attach() {
        tried = std::time(nullptr);
        blind.clear();
        auto attached = KernelProgram::attach(blind);
        if (!attached)
            return blind.push_back(fmt::format(
                "{}: only what netlink lists is known (hca_handle, pd, cq, qp, mr, mr_bytes, srq), and the end of a "
                "process is not seen", attached.error()));
        program.emplace(std::move(*attached));
        list_all();
        due = {};
        (void)list_when_due();
        due = {};
    }

    // Netlink's word is to count for all who have a device open when it is asked next.
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
            program->forget(*pid);
            pid = ended.erase(pid);
        }
    }

    // Also those of whose end no event told, or who have made something since. That takes a system call for each.
    void find_ended(const std::vector<KernelProgram::Entry>& entries) {
        if (Clock::now() < search) return;
        search = Clock::now() + rest_after_search;
        for (const auto pid : program->holders())
            if (has_ended(pid)) ended.insert(pid);
        for (const auto& [counts, open] : entries)
            if (!open && has_ended(counts.pid)) ended.insert(counts.pid);
    }

    // The processes whose MRs may have changed their length go to `bytes`.
    Result<Uses> count(std::set<CgroupDevice>& bytes) {
        const auto entries = program->read();
        if (!entries) return Error{entries.error()};
        find_ended(*entries);
        Uses uses;
        for (const auto& [counts, open] : *entries) {
            const std::string device(counts.device, strnlen(counts.device, sizeof counts.device));
            auto& use = use_of(uses, counts.pid, device, counts.opener);
            use.cgroup = counts.cgroup;
            add(use, counts, open);
            if (open && counts.reregistered) bytes.emplace(counts.pid, device);
        }
        return uses;
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

    bool needs_listing(const std::set<CgroupDevice>& bytes) const { return !program || !bytes.empty() || !listed.empty(); }

    Result<void> correct_all(Uses& uses, std::set<CgroupDevice> bytes) {
        const auto fresh = list_when_due();
        if (!fresh && needs_listing(bytes)) return Error{fresh.error()};
        if (!fresh) return {};
        std::set<CgroupDevice> still;
        for (const auto& use : listing) {
            const CgroupDevice place{use.pid, use.device};
            const bool all = !program || listed.contains(place);
            if (all) still.insert(place);
            if (bytes.erase(place) != 0 || all) correct(uses, use, !all, !*fresh);
        }
        for (const auto& [pid, device] : bytes) use_of(uses, pid, device, pid).stale = true;  // not listed yet
        listed = std::move(still);
        return {};
    }
};

KernelWatch KernelWatch::open() {
    auto state = std::make_unique<State>();
    state->attach();
    return KernelWatch(std::move(state));
}

KernelWatch::KernelWatch(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
KernelWatch::KernelWatch(KernelWatch&&) noexcept = default;
KernelWatch& KernelWatch::operator=(KernelWatch&&) noexcept = default;
KernelWatch::~KernelWatch() = default;

const std::vector<std::string>& KernelWatch::blind() const noexcept { return state_->blind; }
std::uint64_t KernelWatch::since() const noexcept { return state_->since; }
bool KernelWatch::attached() const noexcept { return state_->program.has_value(); }
int KernelWatch::fd() const noexcept { return attached() ? state_->program->fd() : -1; }

bool KernelWatch::knows(Resource resource) const noexcept {
    using enum Resource;
    if (!attached()) return in_netlink(resource);
    return resource != send_wr && resource != recv_wr && resource != cqe && resource != srq_wr;
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

Result<std::vector<KernelUse>> KernelWatch::snapshot() {
    auto& state = *state_;
    if (!attached() && std::time(nullptr) >= state.tried + seconds_between_tries) state.attach();
    Uses uses;
    std::set<CgroupDevice> bytes;
    if (attached()) {
        state.forget_ended();
        if (const auto lost = state.program->lost(); std::exchange(state.lost, lost) != lost) state.list_all();
        auto counted = state.count(bytes);
        if (!counted) return Error{counted.error()};
        uses = std::move(*counted);
    }
    if (state.unlisted || state.needs_listing(bytes))
        if (auto corrected = state.correct_all(uses, bytes); !corrected) return Error{corrected.error()};
    std::vector<KernelUse> found;
    for (auto& [key, use] : uses) found.push_back(std::move(use));
    return found;
}

}  // namespace rdmaquota
