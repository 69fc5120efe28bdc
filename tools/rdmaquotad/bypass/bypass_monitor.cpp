#include "tools/rdmaquotad/bypass/bypass_monitor.hpp"

#include <signal.h>
#include <sys/epoll.h>

#include <chrono>
#include <filesystem>

#include <fmt/core.h>

#include "policy/pattern.hpp"
#include "policy/printable.hpp"
#include "shm/paths.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/guard/guard_pins.hpp"
#include "tools/common/process/maps_reader.hpp"
#include "tools/common/process/verbs_copies.hpp"
#include "tools/common/tenants/names.hpp"

namespace rdmaquota {
namespace {

constexpr std::chrono::steady_clock::duration rest_after_look = std::chrono::milliseconds(50);
constexpr int rest_for_each = 4;  // times as long as the look took, where that is more
constexpr auto time_for_ledgers = std::chrono::milliseconds(50);  // of one look

std::string words(const Difference& difference, bool guarded) {
    const auto unit = unit_of(difference.cgroup);
    std::string text =
        fmt::format("pid {} ({}) on {}{}{}", difference.pid, difference.comm.empty() ? "ended" : difference.comm,
                    difference.device, unit.empty() ? "" : " in unit ", unit);
    for (const auto& [resource, kernel, ledger] : difference.amounts)
        text += fmt::format(", {}: {} in the kernel, {} charged", info(resource).name, format_amount(resource, kernel),
                            format_amount(resource, ledger));
    if (!difference.has_slot)
        text += fmt::format("; {}: 'rdmaquota doctor --pid {}' says why", guarded ? "the guard alone holds it" : "nothing of it is counted",
                            difference.pid);
    return text;
}

Priority priority_of(BypassReport::Kind kind) {
    using enum BypassReport::Kind;
    return kind == bypass_ended || kind == leak_ended ? Priority::info : Priority::warning;
}

Json counts_json(const ResourceCounts& counts) {
    Json json = Json::object();
    for (const auto& row : resource_table)
        if (counts[index(row.id)] != 0) json[std::string(row.name)] = counts[index(row.id)];
    return json;
}

std::set<std::uint32_t> ledgers_in(const SlotHolders::Held& held) {
    std::set<std::uint32_t> ledgers;
    for (const auto& [pid, slots] : held)
        for (const auto& slot : slots) ledgers.insert(slot.ledger);
    return ledgers;
}

bool is_system(const std::string& directory) {
    std::error_code unknown;
    return std::filesystem::equivalent(directory, system_directory, unknown);
}

}  // namespace

Json to_json(const Difference& difference, const std::string& tenant) {
    Json resources = Json::object();
    for (const auto& [resource, kernel, ledger] : difference.amounts)
        resources[std::string(info(resource).name)] = {{"kernel", kernel}, {"ledger", ledger}};
    return Json{
        {"pid", difference.pid},          {"comm", difference.comm},          {"tenant", tenant},
        {"device", difference.device},    {"cgroup", difference.cgroup},      {"unit", unit_of(difference.cgroup)},
        {"counted", difference.has_slot}, {"resources", std::move(resources)}};
}

Json to_json(const HcaCounts& counts) { return Json{{"hca_handle", counts.handle}, {"hca_object", counts.object}}; }

Json to_json(const KernelUse& use) {
    return Json{{"pid", use.pid},
                {"opener", use.opener},
                {"cgroup", use.cgroup},
                {"device", use.device},
                {"live", counts_json(use.live)},
                {"created", counts_json(use.created)},
                {"destroyed", counts_json(use.destroyed)},
                {"driver_objects", use.driver_objects},
                {"partial", use.partial}};
}

BypassMonitor::BypassMonitor(Loop& loop, Node& node, NodeEvents& events, Attached attached)
    : loop_(loop), node_(node), events_(events), attached_(std::move(attached)), backstop_(node.directory()), tenants_(node) {}

void BypassMonitor::start() {
    for_everyone_ = is_system(node_.directory());
    open_watch();
    if (const auto loaded = backstop_.load(); !loaded) log(Priority::error, loaded.error());
    // A daemon that was killed may have bounded a cgroup that the policy no longer names.
    for (const auto& [group, device] : backstop_.all())
        if (group != asked_.backstop) backstop_.put_back(group, device);
    tick_ = loop_.every(std::chrono::milliseconds(BypassDetector::look_interval_ms), [this] { look(); }, Urgency::first);
    watch_events();
    look();
}

// The guard comes and goes with the program that counts: it is a part of it.
void BypassMonitor::open_watch() {
    attached_(nullptr);
    ready_ = {};
    fd_ = -1;
    guarded_ = asked_.guard != GuardMode::off;
    watch_.reset();
    if (!guarded_)
        if (const auto removed = GuardPins::remove_all(); !removed) log(Priority::error, removed.error());
    watch_ = KernelWatch::open(guarded_);
}

void BypassMonitor::new_policy(const Sidecar& asked) {
    if (asked.backstop != asked_.backstop) {
        for (const auto& [group, device] : backstop_.all())
            if (group == asked_.backstop) backstop_.put_back(group, device);
        said_unbounded_.clear();
    }
    asked_ = asked;
    if (!watch_ || guarded_ == (asked.guard != GuardMode::off)) return;
    const LongStep step;
    open_watch();
}

void BypassMonitor::end() { backstop_.put_back_all(); }

// The descriptor exists once the program is attached, which may be later.
void BypassMonitor::watch_events() {
    attached_(guard());
    if (fd_ == watch_->fd()) return;
    fd_ = watch_->fd();
    ready_ = loop_.watch(fd_, EPOLLIN, [this](std::uint32_t) { take_events(); });
}

void BypassMonitor::take_events() {
    bool opened = false;
    std::set<std::uint32_t> ended;
    for (const auto& event : watch_->poll()) {
        opened |= event.kind == KernelEvent::Kind::opened;
        if (event.kind == KernelEvent::Kind::ended) ended.insert(event.pid);
    }
    if (!ended.empty()) reap(ended);
    if (opened) look_soon();
}

// In the ledgers in which they were seen to have slots. Others are reaped at the next tick.
void BypassMonitor::reap(const std::set<std::uint32_t>& pids) {
    std::set<std::uint32_t> ledgers;
    for (const auto pid : pids) ledgers.merge(holders_.ledgers_of(pid));
    const auto& schedule = node_.schedule();
    for (auto* tenant : node_.with_ledger()) {
        auto& ledger = tenant->ledger();
        if (ledgers.contains(ledger.number()) && schedule.is_due(ledger.reap_turn))
            schedule.hasten(ledger.reap_turn, [&] { ledger.reap(); });
    }
}

// Catches a process that goes around the quota for a moment only, without being kept busy by one that opens devices all
// the time.
void BypassMonitor::look_soon() {
    if (soon_) return;
    const auto rest = std::chrono::ceil<std::chrono::milliseconds>(
        looked_ + std::max(rest_after_look, rest_for_each * took_) - Clock::now());
    if (rest > rest.zero()) {
        soon_ = loop_.every(rest, [this] { look_twice(); }, Urgency::first);
        return;
    }
    look_twice();
}

void BypassMonitor::look_twice() {
    soon_ = {};
    compare();
    compare();
}

void BypassMonitor::log_blind() {
    if (watch_->blind() == said_blind_) return;
    said_blind_ = watch_->blind();
    for (const auto& line : *said_blind_) log(Priority::warning, "not seen: " + line);
    if (said_blind_->empty()) log(Priority::info, "sees what the kernel makes");
}

void BypassMonitor::look() {
    if (!compare()) return;
    bound_tenant();
    look_for_denials();
}

bool BypassMonitor::compare() {
    auto uses = watch_->snapshot();
    log_blind();
    watch_events();
    if (!uses) {
        if (std::exchange(said_unread_, uses.error()) != uses.error()) log(Priority::error, uses.error());
        return false;
    }
    uses_ = std::move(*uses);
    looked_ = Clock::now();
    if (!node_.usable()) return false;
    const auto names = machine_devices();
    const std::set<std::string> devices(names.begin(), names.end());
    node_.look(devices, time_for_ledgers);
    auto held = find_held(devices);
    count_churn(held);
    for (const auto& report : detector_.look(observe(std::move(held)))) emit(report);
    took_ = Clock::now() - looked_;
    ++looks_;
    return true;
}

void BypassMonitor::follow_ledgers() {
    std::vector<std::uint32_t> numbers;
    for (const auto* tenant : node_.with_ledger()) numbers.push_back(tenant->ledger().number());
    if (std::exchange(followed_, numbers) == numbers) return;
    std::map<std::uint32_t, std::string> paths;
    for (const auto* tenant : node_.with_ledger())
        if (tenant->ledger().number() != 0) paths[tenant->ledger().number()] = tenant->ledger().path();
    holders_.follow(paths);
}

// A ledger at rest may have got its first owner since it was checked last.
SlotHolders::Held BypassMonitor::find_held(const std::set<std::string>& devices) {
    follow_ledgers();
    auto held = holders_.find(openings_by_process(uses_), node_.claims());
    const auto in_use = ledgers_in(held);
    for (auto* tenant : node_.with_ledger()) {
        auto& ledger = tenant->ledger();
        if (ledger.at_rest() && in_use.contains(ledger.number())) node_.look_at(ledger, devices);
    }
    return held;
}

void BypassMonitor::count_churn(const SlotHolders::Held& held) {
    const auto ended = watch_->take_ended();
    if (!watch_->attached()) return;
    std::map<std::uint32_t, std::string> tenants;  // by ledger
    for (const auto* tenant : node_.with_ledger()) tenants[tenant->ledger().number()] = tenant->key();
    churn_.add(uses_, ended, [&](const KernelUse& use) {
        const auto slots = held.find(use.pid);
        if (slots != held.end()) return tenants[slots->second.front().ledger];
        return ::kill(static_cast<pid_t>(use.pid), 0) == 0 ? tenants_.of(use.pid) : std::string();
    });
    churn_.keep([this](const std::string& tenant) { return tenant.empty() || node_.find(tenant) != nullptr; });
}

Observation BypassMonitor::observe(SlotHolders::Held held) {
    Observation observation{looked_, uses_, {}, watch_->attached(), watch_->since(), {}, std::move(held),
                            holders_.unread(), for_everyone_, [this](std::uint32_t pid) { return tenants_.of(pid); },
                            [this](const std::string& key) {
                                const auto* tenant = node_.find(key);
                                return tenant == nullptr || tenant->mode() != Mode::off;
                            }};
    for (const auto& row : resource_table) observation.known[index(row.id)] = watch_->knows(row.id);
    const auto in_use = ledgers_in(observation.held);
    for (const auto* tenant : node_.with_ledger()) {
        const auto& ledger = tenant->ledger();
        if (!ledger.slots().empty() || (ledger.usable() && in_use.contains(ledger.number())))
            observation.ledgers.push_back({tenant->key(), ledger.number(), ledger.looked() >= looked_, ledger.slots()});
    }
    return observation;
}

std::string BypassMonitor::name_of(const std::string& key) const {
    const auto* tenant = node_.find(key);
    return tenant != nullptr ? tenant->name() : key;
}

// Names the libibverbs of a process that goes around us: it may be one that has to be adopted.
void BypassMonitor::emit(const BypassReport& report) {
    auto json = to_json(report.difference, name_of(report.difference.tenant));
    auto text = words(report.difference, asked_.guard == GuardMode::deny && guard() != nullptr);
    if (const auto user = user_of_process(report.difference.pid)) json["uid"] = *user;
    const auto directory = report.kind == BypassReport::Kind::bypass ? proc_directory_with_memory(report.difference.pid) : "";
    const auto maps = directory.empty() ? std::nullopt : read_maps(directory);
    if (const auto library = maps ? named_verbs_copy(maps->text) : std::string(); !library.empty()) {
        json["library"] = library;
        text += ", by " + printable(library);
    }
    events_.emit(priority_of(report.kind), kind_of(report.kind), std::move(json), text);
}

// Makes rdma.max follow the limits of `default`.
void BypassMonitor::bound_tenant() {
    auto* tenant = node_.find(default_tenant);
    if (asked_.backstop.empty() || tenant == nullptr) return;
    tenant->refresh();  // another row means another file
    if (tenant->limits() == nullptr) return;
    std::string failure;
    for (const auto& device : machine_devices()) {
        const auto limit = [&](Resource resource) { return tenant->limits()->limit(Scope::tenant, device, resource); };
        const HcaCounts bound{limit(Resource::hca_handle), limit(Resource::hca_object)};
        const bool bounded = backstop_.bounds(asked_.backstop, device);
        if (!bounded && bound == HcaCounts{}) continue;
        if (const auto set = backstop_.set(asked_.backstop, device, bound); !set) failure = set.error();
    }
    if (std::exchange(said_unbounded_, failure) != failure && !failure.empty())
        log(Priority::error, "backstop: " + failure);
}

// The kernel's own count never falls. Denials before the group was first seen are not reported.
void BypassMonitor::look_for_denials() {
    const auto known = std::exchange(denied_, {});
    for (const auto& place : backstop_.all()) {
        const auto now = backstop_.denied(place.first, place.second);
        if (!now) continue;
        denied_[place] = *now;
        const auto before = known.find(place);
        if (before == known.end()) continue;
        const auto& [group, device] = place;
        const auto emit = [&, &group = group, &device = device](Resource resource, auto was, auto is) {
            if (is <= was) return;
            const auto name = info(resource).name;
            events_.emit(Priority::warning, "backstop_denied",
                         Json{{"tenant", default_tenant}, {"cgroup", group}, {"device", device}, {"resource", name},
                              {"denied", is - was}, {"total", is}},
                         fmt::format("{} of cgroup {} on {}: {} more denied by rdma.max, {} in all", name, group,
                                     device, is - was, is));
        };
        emit(Resource::hca_handle, before->second.handle, now->handle);
        emit(Resource::hca_object, before->second.object, now->object);
    }
}

std::map<std::string, HcaCounts> BypassMonitor::denied() const {
    std::map<std::string, HcaCounts> by_device;
    for (const auto& [place, counts] : denied_)
        if (place.first == asked_.backstop) by_device[place.second] = counts;
    return by_device;
}

Json BypassMonitor::bound_json(const std::string& group, const std::string& device) const {
    Json json{{"cgroup", group}, {"device", device}};
    if (const auto current = backstop_.current(group, device)) json["current"] = to_json(*current);
    if (const auto found = denied_.find({group, device}); found != denied_.end())
        json["denied"] = to_json(found->second);
    return json;
}

Json BypassMonitor::bypasses_json(const Sees& sees) const {
    Json json = Json::array();
    for (const auto& bypass : detector_.bypasses())
        if (sees(bypass.tenant)) json.push_back(to_json(bypass, name_of(bypass.tenant)));
    return json;
}

Json BypassMonitor::status(const Sees& sees) const {
    Json bounds = Json::array();
    for (const auto& [group, device] : backstop_.all()) bounds.push_back(bound_json(group, device));
    std::uint64_t corrected = 0;
    for (const auto* tenant : node_.with_ledger()) corrected += tenant->ledger().gates_corrected();
    return Json{{"attached", watch_->attached()},
                {"not_seen", watch_->blind()},
                {"bypasses", bypasses_json(sees)},
                {"bounded", std::move(bounds)},
                {"looks", looks_},
                {"gates_corrected", corrected}};
}

}  // namespace rdmaquota
