#include "tools/rdmaquotad/guard/guard.hpp"

#include <sys/epoll.h>

#include <fmt/core.h>

#include "tools/common/json.hpp"
#include "tools/rdmaquotad/core/log.hpp"

namespace rdmaquota {
namespace {

constexpr auto between_same = std::chrono::seconds(1);
constexpr std::size_t most_told = 4096;

SidecarKind kind_of(u32 what) {
    if (what == told_refused) return "refused";
    return what == told_killed ? SidecarKind("killed") : SidecarKind("exceeded");
}

Json cell_json(const guard_row& row, u32 place) {
    Json cell{{"used", row.used[place]}, {"refused", row.refused[place]}, {"limit", nullptr}};
    if (row.limit[place] != unlimited) cell["limit"] = row.limit[place];
    return cell;
}

Json row_json(const guard_row& row) {
    Json cells = Json::object();
    for (u32 place = 0; place < guard_resources; ++place)
        if (const auto resource = guarded_resource(place))
            if (row.used[place] != 0 || row.refused[place] != 0 || row.limit[place] != unlimited)
                cells[std::string(info(*resource).name)] = cell_json(row, place);
    return cells;
}

}  // namespace

void Guard::follow(GuardProgram* program) {
    if (parts_ && &parts_->program == program) return;
    if (parts_) __atomic_store_n(parts_->program.words().mode, guard_off, __ATOMIC_RELEASE);  // it is taken out piece by piece
    parts_.reset();
    told_.clear();
    kept_ = false;
    if (program == nullptr) return;
    parts_.emplace(node_, *program);
    parts_->ready = loop_.watch(program->fd(), EPOLLIN, [this](std::uint32_t) { take_events(); }, Urgency::first);
    began_ = Clock::now();
    log(Priority::notice, fmt::format("the guard is on: {}", name(mode_)));
}

void Guard::set_mode(GuardMode mode) {
    if (std::exchange(mode_, mode) != mode && parts_) log(Priority::notice, fmt::format("the guard: {}", name(mode)));
    apply_mode();
}

// Nothing is refused before the limits are there.
void Guard::apply_mode() {
    if (!parts_ || !kept_) return;
    const auto& words = parts_->program.words();
    __atomic_store_n(words.mode, mode_ == GuardMode::deny ? guard_deny : guard_watch, __ATOMIC_RELEASE);
    __atomic_store_n(words.judges, Clock::now() - began_ >= spares_for ? 1 : 0, __ATOMIC_RELEASE);
}

void Guard::update(const std::vector<std::string>& devices) {
    if (!parts_ || !node_.usable()) return;
    const auto policy = node_.policy() != nullptr ? node_.policy()->id() : 0;
    if (parts_->rows.update(node_, devices) || std::exchange(policy_, policy) != policy) parts_->owners.introduce_all(devices);
    parts_->owners.settle();
    parts_->audit.pass(parts_->program.rows(), parts_->program.files());
    if (!kept_) {
        const auto kept = parts_->program.keep();
        const auto error = kept ? std::string() : kept.error();
        if (std::exchange(said_, error) != error && !error.empty())
            log(Priority::error, "the guard ends with this process: " + error);
        kept_ = true;
    }
    apply_mode();
}

void Guard::take_events() {
    bool pending = false;
    for (const auto& event : parts_->program.events())
        if (event.what == told_pending) pending = true;
        else tell(event);
    if (pending && node_.usable()) parts_->owners.settle();
}

void Guard::tell(const guard_event& event) {
    auto& count = event.what == told_refused ? counts_.refused : event.what == told_killed ? counts_.killed : counts_.exceeded;
    ++count;
    if (told_.size() > most_told) told_.clear();
    auto& told = told_[{event.what, event.pid, event.row, event.resource}];
    if (Clock::now() - told.when < between_same) {
        ++told.more;
        return;
    }
    const auto times = std::exchange(told.more, 0) + 1;
    told.when = Clock::now();
    const std::string comm(event.comm, strnlen(event.comm, sizeof event.comm));
    if (event.what == told_killed) {
        const auto* whose = parts_->rows.meaning(parts_->program.files()[event.file % opener_slots].stamp.rows[0]);
        const auto tenant = whose != nullptr ? whose->tenant : std::string(default_tenant);
        events_.emit(Priority::warning, "killed", Json{{"tenant", tenant}, {"pid", event.pid}, {"comm", comm}},
                     fmt::format("pid {} ({}) made more than it may, by a way that cannot be refused; its open device "
                                 "makes nothing more", event.pid, comm));
        return;
    }
    const auto* meaning = parts_->rows.meaning(event.row);
    const auto resource = guarded_resource(event.resource);
    if (meaning == nullptr || !resource) return;
    events_.emit(Priority::warning, kind_of(event.what),
                 Json{{"tenant", meaning->tenant}, {"pid", event.pid}, {"comm", comm}, {"device", meaning->device},
                      {"resource", info(*resource).name}, {"scope", name(meaning->scope)},
                      {"used", event.used}, {"limit", event.limit}, {"times", times}},
                 fmt::format("pid {} ({}), {} on {}: {} uses {} of {} by the kernel's count{}", event.pid, comm,
                             info(*resource).name, meaning->device,
                             meaning->scope == Scope::process ? "the process" : "tenant " + meaning->tenant,
                             format_amount(*resource, event.used),
                             format_amount(*resource, event.limit),
                             times == 1 ? "" : fmt::format(", {} times", times)));
}

std::vector<Guard::Usage> Guard::usage() const {
    std::vector<Usage> all;
    if (!parts_) return all;
    for (const auto& [place, number] : parts_->rows.tenants()) {
        const auto* meaning = parts_->rows.meaning(number);
        if (meaning == nullptr) continue;
        const auto& row = parts_->rows.row(number);
        for (u32 at = 0; at < guard_resources; ++at)
            if (const auto resource = guarded_resource(at);
                resource && (row.used[at] != 0 || row.refused[at] != 0 || row.limit[at] != unlimited))
                all.push_back({meaning->tenant, meaning->device, *resource, row.used[at], row.refused[at]});
    }
    return all;
}

Json Guard::status(const std::function<bool(const std::string&)>& sees) const {
    const auto* state = !parts_ ? "off" : mode_ == GuardMode::deny && !*parts_->program.words().judges ? "starting" : name(mode_).data();
    Json json{{"state", state}, {"tenants", Json::array()}};
    if (!parts_) return json;
    json["refused"] = counts_.refused;
    json["exceeded"] = counts_.exceeded;
    json["killed"] = counts_.killed;
    std::map<std::string, Json> tenants;
    for (const auto& [place, number] : parts_->rows.tenants()) {
        const auto* meaning = parts_->rows.meaning(number);
        if (meaning != nullptr && sees(meaning->tenant)) tenants[meaning->tenant][place.second] = row_json(parts_->rows.row(number));
    }
    for (auto& [tenant, devices] : tenants) json["tenants"].push_back({{"name", tenant}, {"devices", std::move(devices)}});
    return json;
}

}  // namespace rdmaquota
