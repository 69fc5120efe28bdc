#include "tools/rdmaquota/view/event_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <utility>

#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/event_text.hpp"
#include "tools/common/names.hpp"

namespace rdmaquota {
namespace {

// Asked once for each user.
const std::string& name_of(uid_t user) {
    static std::map<uid_t, std::string> names;
    const auto known = names.find(user);
    return known != names.end() ? known->second : names.emplace(user, user_name(user)).first->second;
}

}  // namespace

Result<void> LedgerEvents::open() {
    inode_ = inode_now();
    auto ledger = Ledger::open(ledger_path(place_.here));
    if (!ledger) return Error{ledger.error()};
    ledger_.emplace(std::move(ledger.value()));
    if (const auto limits = LimitsSegment::open(limits_path(place_.here))) tenant_ = limits->tenant();
    next_ = {};
    counts_.clear();
    return {};
}

ino_t LedgerEvents::inode_now() const {
    struct stat status {};
    return ::stat(ledger_path(place_.here).c_str(), &status) == 0 ? status.st_ino : 0;
}

void LedgerEvents::add(std::uint64_t number, const Event& event, PrintedEvents& events) {
    const auto devices = ledger_->devices();
    const auto user = has_user(event) ? name_of(event.uid) : "-";
    PrintedEvent printed{event_json(number, event, devices, tenant_), event_line(event, devices, tenant_, user)};
    printed.json["user"] = has_user(event) ? Json(user) : Json(nullptr);
    if (!is_repair(event.kind)) counts_[number] = event.count;
    events.emplace(event_time(event.time_ns, false), std::move(printed));
}

void LedgerEvents::add_new(PrintedEvents& events) {
    for (const auto& [number, event] : ledger_->events(next_)) add(number, event, events);
}

void LedgerEvents::add_repeated(PrintedEvents& events) {
    const auto head = ledger_->event_cursor();
    EventCursor known{0, head.repairs};
    std::map<std::uint64_t, std::uint64_t> kept;
    for (const auto& [number, event] : ledger_->events(known)) {
        const auto before = counts_.find(number);
        if (before == counts_.end()) continue;
        if (event.count > before->second) add(number, event, events);
        kept[number] = event.count;
    }
    counts_ = std::move(kept);
}

Result<void> EventSource::open() {
    std::string error;
    for (const auto& place : tenant_places(directory_)) {
        const auto known = std::find_if(ledgers_.begin(), ledgers_.end(),
                                        [&](const LedgerEvents& one) { return one.key() == place.key; });
        if (known != ledgers_.end() ? !known->replaced() : !place.has_ledger()) continue;
        LedgerEvents ledger(place);
        const auto opened = ledger.open();
        if (!opened) error = opened.error();
        else if (known != ledgers_.end()) *known = std::move(ledger);
        else ledgers_.push_back(std::move(ledger));
    }
    if (!ledgers_.empty() || error.empty()) return ledgers_.empty() ? nothing() : Result<void>();
    return Error{error};
}

Result<void> EventSource::nothing() const {
    const auto place = find_tenant(directory_, "");
    if (!place) return Error{place.error()};
    const auto ledger = Ledger::open(ledger_path(place->here));
    return ledger ? Result<void>() : Error{ledger.error()};
}

// The sidecar, and what is repeated, are looked at once a second.
PrintedEvents EventSource::take() {
    PrintedEvents events;
    const auto now = std::time(nullptr);
    const bool all = std::exchange(asked_, now) != now;
    for (auto& ledger : ledgers_) {
        if (all) ledger.add_repeated(events);
        ledger.add_new(events);
    }
    if (all) add_sidecar(events);
    return events;
}

void EventSource::add_sidecar(PrintedEvents& events) {
    const auto answer = ask_sidecar(directory_, Json{{"request", "events"}, {"since", next_of_sidecar_}});
    if (!answer) return;
    const auto next = answer->value("next", std::uint64_t{0});
    for (const auto& event : answer->value("events", Json::array()))
        events.emplace(event.value("time", ""), PrintedEvent{event, sidecar_line(event)});
    next_of_sidecar_ = next < next_of_sidecar_ ? 0 : next;  // a new sidecar counts from 0
}

}  // namespace rdmaquota
