#include "tools/rdmaquota/view/event_source.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <set>
#include <utility>

#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/events/event_journal.hpp"
#include "tools/common/events/event_text.hpp"
#include "tools/common/tenants/names.hpp"

namespace rdmaquota {
namespace {

// Asked once for each user.
const std::string& name_of(uid_t user) {
    static std::map<uid_t, std::string> names;
    const auto known = names.find(user);
    return known != names.end() ? known->second : names.emplace(user, user_name(user)).first->second;
}

Json with_user(Json event) {
    const auto uid = event.find("uid");
    if (uid != event.end() && uid->is_number_unsigned()) event["user"] = name_of(uid->get<uid_t>());
    return event;
}

// The same for an event and its repeats. Numbers begin anew with a ledger, and with the sidecar.
std::string identity_of(const Json& event) {
    const auto text = [&](const char* member) {
        const auto found = event.find(member);
        return found == event.end() ? std::string() : found->dump();
    };
    return text("source") + text("tenant") + text("kind") + text("number") +
           text(event.contains("first_time") ? "first_time" : "time");
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

void LedgerEvents::add(std::uint64_t number, const Event& event, EventsByTime& events) {
    const auto devices = devices_of(*ledger_);
    auto json = event_json(number, event, devices, tenant_);
    json["user"] = has_user(event) ? Json(name_of(event.uid)) : Json(nullptr);
    if (!is_repair(event.kind)) counts_[number] = event.count;
    events.emplace(event_time(event.time_ns, false), std::move(json));
}

void LedgerEvents::add_new(EventsByTime& events) {
    for (const auto& [number, event] : ledger_->events(next_)) add(number, event, events);
}

void LedgerEvents::add_repeated(EventsByTime& events) {
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
        if (!opened)
            error = opened.error();
        else if (known != ledgers_.end())
            *known = std::move(ledger);
        else
            ledgers_.push_back(std::move(ledger));
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

// What the journal has of ledgers and of the sidecar, but for what these still have themselves.
void EventSource::add_past(const std::string& since, EventsByTime& events) const {
    std::set<std::string> present;
    for (const auto& [time, event] : events) present.insert(identity_of(event));
    std::map<std::string, Json> past;  // what is repeated stands there again, with its count
    for (auto& event : read_event_journal(directory_, since))
        if (auto identity = identity_of(event); !present.contains(identity))
            past[std::move(identity)] = std::move(event);
    for (const auto& [identity, event] : past) events.emplace(event.value("time", ""), with_user(event));
}

// The sidecar, and what is repeated, are looked at once a second.
EventsByTime EventSource::take() {
    EventsByTime events;
    const auto now = std::time(nullptr);
    const bool all = std::exchange(asked_, now) != now;
    for (auto& ledger : ledgers_) {
        if (all) ledger.add_repeated(events);
        ledger.add_new(events);
    }
    if (all) add_jobs(events);
    if (all) add_sidecar(events);
    return events;
}

void EventSource::add_jobs(EventsByTime& events) {
    for (auto& event : job_events(directory_, next_of_jobs_)) {
        auto time = event.value("time", "");
        events.emplace(std::move(time), std::move(event));
    }
}

void EventSource::add_sidecar(EventsByTime& events) {
    const auto answer = ask_sidecar(directory_, Json{{"request", "events"}, {"since", next_of_sidecar_}});
    if (!answer) return;
    const auto next = answer->value("next", std::uint64_t{0});
    for (const auto& event : answer->value("events", Json::array()))
        events.emplace(event.value("time", ""), with_user(event));
    next_of_sidecar_ = next < next_of_sidecar_ ? 0 : next;  // a new sidecar counts from 0
}

}  // namespace rdmaquota
