#include "tools/rdmaquotad/guard/guard.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <set>
#include <utility>
#include <vector>

#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/core.h>

#include "tools/common/boot_clock.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/guard/guard_pins.hpp"
#include "tools/common/guard/guard_turn.hpp"
#include "tools/common/guard/guard_who.hpp"
#include "tools/common/guard/kept_guard.hpp"
#include "tools/common/guard/kernel_word.hpp"
#include "tools/common/open_file.hpp"
#include "policy/fixed_text.hpp"
#include "tools/rdmaquotad/bypass/process_info.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/loop/log.hpp"

namespace rdmaquota {
namespace {

constexpr auto between_same = std::chrono::seconds(1);
constexpr std::size_t most_told = 4096;

// An object that exceeds a limit may belong to a request from before the guard was attached: no process is killed for that long.
u64 grace_ns() {
    constexpr u64 ten_seconds = 10'000'000'000;
    return std::getenv("RDMAQUOTA_TEST_GUARD_JUDGES_AT_ONCE") != nullptr ? 0 : ten_seconds;
}

SidecarKind kind_of(const guard_event& event) {
    if (event.what == told_refused) return "refused";
    return event.what == told_killed ? SidecarKind("killed") : SidecarKind("exceeded");
}

std::string comm_of(const guard_event& event) { return std::string(fixed_text(event.comm)); }

Json whose(const guard_event& event, const GuardRows::Meaning& meaning) {
    return Json{{"tenant", meaning.tenant}, {"pid", event.pid}, {"uid", event.uid}, {"comm", comm_of(event)}, {"device", meaning.device()}};
}

// Of a refusal by a limit over all devices, the event has the figures of the one device, where there is room.
bool is_over_all_devices(const guard_event& event, u64 amount) {
    return event.what == told_refused && (event.limit == guard_no_limit || event.used + amount <= event.limit);
}

std::string reason(const guard_event& event, const GuardRows::Meaning& meaning, Resource resource, u64 amount) {
    const auto who = meaning.scope == Scope::process ? "the process" : "tenant " + meaning.tenant;
    if (is_rate(resource)) return fmt::format("{} is beyond twice the burst of its rate by the kernel's count", who);
    if (is_over_all_devices(event, amount))
        return fmt::format("{} has no more room over all devices by the kernel's count", who);
    return fmt::format("{} uses {} of {} by the kernel's count", who, format_amount(resource, event.used), format_amount(resource, event.limit));
}

// One look at a cell of a row, so that decisions and texts about it agree. A rate has only what was refused.
struct CellFigures {
    u64 used = 0, refused, limit = guard_no_limit;
    CellFigures(const guard_row& row, u32 place) : refused(load_relaxed(row.refused[place])) {
        if (place >= guard_resources) return;
        used = load_relaxed(row.used[place]);
        limit = row.limit[place];
    }
    bool has_anything() const { return used != 0 || refused != 0 || limit != guard_no_limit; }
};

Json figures_json(const CellFigures& figures) {
    Json cell{{"used", figures.used}, {"refused", figures.refused}, {"limit", nullptr}};
    if (figures.limit != guard_no_limit) cell["limit"] = figures.limit;
    return cell;
}

// No command gives a row to a tenant behind our back: those that come later find the sidecar.
std::vector<OpenFile> take_turns() {
    std::vector<OpenFile> turns;
    for (const auto& pins : GuardPins::all()) turns.push_back(take_turn(pins, std::chrono::seconds(2)));
    return turns;
}

GuardRows::Members limited_tenants(Node& node) {
    GuardRows::Members members;
    for (const auto& [key, tenant] : node.tenants())
        if (!is_template(key) && tenant.limits() != nullptr)
            members.push_back({tenant.key(), tenant.name(), tenant.place().here, tenant.limits(), tenant.has_ledger()});
    return members;
}

Json row_json(const guard_row& row) {
    Json cells = Json::object();
    for (u32 place = 0; place < guard_limits; ++place)
        if (const auto resource = guarded_resource(place))
            if (const CellFigures figures(row, place); figures.has_anything())
                cells[std::string(info(*resource).name)] = figures_json(figures);
    return cells;
}

}  // namespace

void Guard::follow(GuardProgram* program) {
    if (parts_ && &parts_->program == program) return;
    if (parts_) __atomic_store_n(&parts_->program.mode(), guard_off, __ATOMIC_RELEASE);  // it is taken out piece by piece
    parts_.reset();
    told_.clear();
    refused_.clear();
    kept_ = turned_off_ = false;
    if (program == nullptr) return;
    {
        const auto turns = take_turns();
        parts_.emplace(node_, *program, make_tenant_);
    }
    refusals_before_ = load_relaxed(*program->words().refusals);
    program->rows()[0].process = directory_mark(node_.directory());
    parts_->ready = loop_.watch(program->fd(), EPOLLIN, [this](std::uint32_t) { take_events(); });
    log(Priority::notice, fmt::format("the guard is on: {}", name(mode_)));
}

void Guard::set_mode(GuardMode mode) {
    if (std::exchange(mode_, mode) != mode && parts_) log(Priority::notice, fmt::format("the guard: {}", name(mode)));
    apply_mode();
}

// Nothing is refused before the limits are there. Later, what was turned off by somebody else stays off.
void Guard::apply_mode() {
    if (!parts_ || !kept_ || turned_off_) return;
    auto& mode = parts_->program.mode();
    const u32 wanted = mode_ == GuardMode::deny ? guard_deny : guard_watch;
    u32 before = __atomic_load_n(&mode, __ATOMIC_ACQUIRE);
    turned_off_ = before == guard_off || !__atomic_compare_exchange_n(&mode, &before, wanted, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    u64& judges = *parts_->program.words().judges;
    if (load_relaxed(judges) == 0) __atomic_store_n(&judges, boot_ns() + grace_ns(), __ATOMIC_RELEASE);
}

// This one refuses before another version's ends; whatever kills this process in between leaves one that does.
void Guard::keep() {
    auto kept = parts_->program.keep();
    auto& mode = parts_->program.mode();
    if (__atomic_load_n(&mode, __ATOMIC_ACQUIRE) == guard_off) __atomic_store_n(&mode, guard_watch, __ATOMIC_RELEASE);
    kept_ = true;
    apply_mode();
    if (kept) kept = parts_->program.replace_others();
    said_ = kept ? "" : "the kernel does not keep the guard when the sidecar ends: " + kept.error();
    if (!said_.empty()) log(Priority::error, said_);
}

// To look at all processes takes long, and most new policies have other limits only.
bool Guard::rules_changed() {
    const auto policy = node_.policy() != nullptr ? node_.policy()->id() : 0;
    if (std::exchange(policy_, policy) == policy) return false;
    auto rules = node_.policy() != nullptr ? node_.policy()->rules() : std::string();
    for (const auto& [cgroup, tenant] : bound_cgroups(node_.decompiled())) rules += fmt::format("{} ", cgroup);
    return std::exchange(rules_, rules) != rules;
}

void Guard::update() {
    if (!parts_ || !node_.usable()) return;
    const auto devices = UverbsDevices::now().identities();
    const bool others = parts_->rows.update(limited_tenants(node_), devices) || std::exchange(parts_->has_new_rows, false);
    if (rules_changed() || others || parts_->owners.is_crowded()) parts_->owners.introduce_all(devices);
    if (others) parts_->owners.refresh();
    parts_->owners.settle();
    for (const auto file : parts_->owners.take_exceeding()) judge(file);
    parts_->audit.pass(parts_->program.rows(), parts_->program.files());
    if (const auto without = parts_->rows.without(); std::exchange(without_, without) == 0 && without != 0)
        log(Priority::error, fmt::format("the guard has no room for {} more rows", without));
    if (kept_) apply_mode();
    else keep();
}

// Resolves openers first, since their programs wait.
void Guard::take_events() {
    const auto events = parts_->program.events();
    const auto unknown = parts_->program.unknown();
    if (node_.usable()) introduce(unknown);
    for (const auto& event : events) tell(event);
}

void Guard::introduce(const std::vector<guard_unknown>& asked) {
    if (asked.empty()) return;
    Unknown unknown;
    for (const auto& one : asked) unknown[{one.pid, one.tid, one.who.uverbs}] = one;
    introduce(unknown);
    if (!parts_->owners.take_rows_are_missing()) return;
    parts_->has_new_rows |= parts_->rows.update(limited_tenants(node_), UverbsDevices::now().identities());
    introduce(unknown);
}

void Guard::introduce(const Unknown& unknown) {
    for (const auto& [thread, asked] : unknown) parts_->owners.introduce(asked);
    parts_->owners.settle();
    for (const auto file : parts_->owners.take_exceeding()) judge(file);
}

// Kills the process that exceeded a limit through write(2) before the guard had resolved its tenant. The kernel's program does the same
// to processes whose tenant is resolved.
void Guard::judge(u32 number) {
    const auto& words = parts_->program.words();
    const u64 from = load_relaxed(*words.judges);
    auto& file = parts_->program.files()[number];
    if (mode_ != GuardMode::deny || from == 0 || boot_ns() < from) return;
    const OpenFile process(static_cast<int>(::syscall(SYS_pidfd_open, file.pid, 0)));
    __atomic_store_n(&words.openers[number].forbidden, 1, __ATOMIC_RELEASE);
    auto& own = parts_->program.rows()[file.stamp.rows[file.process_row != 0 ? 1 : 0]];
    for (u32 place = 0; place < guard_resources; ++place)
        if (load_relaxed(file.waited[place]) + load_relaxed(file.held[place]) != 0) __atomic_fetch_or(&own.exceeded, 1U << place, __ATOMIC_RELAXED);
    if (!process || !started_then(file)) return;
    if (::syscall(SYS_pidfd_send_signal, process.fd(), SIGKILL, nullptr, 0) != 0)
        return log(Priority::error, fmt::format("pid {} made more than it may before it was known, and cannot be killed: {}", file.pid, std::strerror(errno)));
    guard_event event{};
    event.what = told_killed;
    event.pid = file.pid;
    event.row = file.stamp.rows[0];
    event.uid = file.uid;
    const auto info = process_info(file.pid);
    const auto comm = info ? info->comm : std::string();
    std::memcpy(event.comm, comm.data(), std::min(comm.size(), sizeof event.comm - 1));
    tell(event);
}

Guard::Counts Guard::counts() const noexcept {
    auto counts = counts_;
    if (parts_) counts.refused += load_relaxed(*parts_->program.words().refusals) - refusals_before_;
    return counts;
}

void Guard::tell(const guard_event& event) {
    if (event.what == told_killed) ++counts_.killed;
    if (event.what == told_exceeded) ++counts_.exceeded;
    if (told_.size() > most_told) told_.clear();
    auto& told = told_[{event.what, event.pid, event.row, event.resource}];
    told.more += times_of(event);
    if (Clock::now() - told.when < between_same) return;
    const auto times = std::exchange(told.more, 0);
    told.when = Clock::now();
    if (event.what == told_killed) return tell_killed(event);
    const auto* meaning = parts_->rows.meaning(event.row);
    const auto resource = guarded_resource(event.resource);
    if (meaning == nullptr || !resource) return;
    const auto amount = info(*resource).unit == Unit::bytes ? event.amount : 1;
    auto json = whose(event, *meaning);
    json.update({{"resource", info(*resource).name}, {"scope", name(meaning->scope)}, {"requested", amount},
                 {"used", event.used}, {"limit", event.limit == guard_no_limit || is_rate(*resource) ? Json() : Json(event.limit)}, {"times", times}});
    events_.emit(Priority::warning, kind_of(event), std::move(json),
                 fmt::format("pid {} ({}), {} more {} on {}: {}{}", event.pid, comm_of(event), format_amount(*resource, amount),
                             info(*resource).name, meaning->device(), reason(event, *meaning, *resource, amount),
                             times == 1 ? "" : fmt::format(", {} times", times)));
}

// How many refusals an event stands for: the kernel's program sends at most one event per limit in `guard_told_ms`.
u64 Guard::times_of(const guard_event& event) {
    if (event.what != told_refused) return 1;
    if (refused_.size() > most_told) refused_.clear();
    const auto [before, first] = refused_.try_emplace({event.row, event.resource}, event.refused);
    const auto times = first || event.refused <= before->second ? 1 : event.refused - before->second;
    before->second = std::max(before->second, event.refused);
    return times;
}

void Guard::tell_killed(const guard_event& event) {
    const auto* meaning = parts_->rows.meaning(event.row);
    events_.emit(Priority::warning, "killed",
                 whose(event, meaning != nullptr ? *meaning : GuardRows::Meaning{std::string(default_tenant), "", Scope::tenant}),
                 fmt::format("pid {} ({}) made more than it may{}, by a way that cannot be refused; its open device makes nothing "
                             "more",
                             event.pid, comm_of(event), meaning != nullptr ? " on " + meaning->device() : ""));
}

std::vector<Guard::Usage> Guard::usage() const {
    std::vector<Usage> all;
    if (!parts_) return all;
    for (const auto& [place, number] : parts_->rows.tenants()) {
        const auto* meaning = parts_->rows.meaning(number);
        if (meaning == nullptr) continue;
        const auto& row = parts_->rows.row(number);
        for (u32 at = 0; at < guard_limits; ++at)
            if (const auto resource = guarded_resource(at))
                if (const CellFigures figures(row, at); figures.has_anything())
                    all.push_back({meaning->tenant, meaning->device(), *resource, figures.used, figures.refused});
    }
    return all;
}

std::vector<std::string> Guard::problems() const {
    std::vector<std::string> lines;
    if (!parts_) return lines;
    if (!said_.empty()) lines.push_back(said_);
    if (const auto without = parts_->rows.without(); without != 0)
        lines.push_back(fmt::format("there is no room for {} more rows: the limits of some tenants do not hold", without));
    return lines;
}

// Without a program of its own, there may be one of another version that the kernel keeps.
std::string_view Guard::state() const {
    if (!parts_) return GuardPins::all().empty() ? "off" : "kept";
    if (!kept_ && !turned_off_) return "starting";
    return name(mode_);
}

Json Guard::status(const std::function<bool(const std::string&)>& sees) const {
    Json json{{"state", state()}, {"tenants", Json::array()}, {"problems", problems()}};
    if (!parts_) return json;
    json["refused"] = counts().refused;
    json["exceeded"] = counts_.exceeded;
    json["killed"] = counts_.killed;
    std::map<std::string, Json> tenants;
    for (const auto& [place, number] : parts_->rows.tenants()) {
        const auto* meaning = parts_->rows.meaning(number);
        if (meaning != nullptr && sees(meaning->tenant)) tenants[meaning->tenant][meaning->device()] = row_json(parts_->rows.row(number));
    }
    for (auto& [tenant, devices] : tenants) json["tenants"].push_back({{"name", tenant}, {"devices", std::move(devices)}});
    return json;
}

}  // namespace rdmaquota
