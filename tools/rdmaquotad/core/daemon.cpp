#include "tools/rdmaquotad/core/daemon.hpp"

#include <algorithm>
#include <csignal>
#include <ctime>

#include <systemd/sd-daemon.h>

#include <fmt/core.h>

#include "tools/common/event_text.hpp"
#include "tools/common/reload.hpp"
#include "tools/rdmaquotad/dynamic/capacity.hpp"
#include "tools/rdmaquotad/history/history_file.hpp"
#include "tools/rdmaquotad/core/log.hpp"
#include "tools/rdmaquotad/serve/metrics.hpp"

namespace rdmaquota {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t between_saves_s = 60;

std::uint64_t now_s() { return static_cast<std::uint64_t>(std::time(nullptr)); }

}  // namespace

Daemon::Daemon(std::string directory, std::string policy_file)
    : policy_file_(std::move(policy_file)),
      node_(std::move(directory)),
      kernel_(loop_, node_, events_),
      dynamic_(node_, events_, [this](const std::string& device, Resource resource) {
          return usage(device, resource);
      }, capacity),
      answers_({node_, events_, [this] { return status(); }, [this] { return kernel_.bypasses_json(); },
                [this](const Request& request) { return history(request); },
                [this] { return reload(); }}),
      control_(loop_, node_.directory() + "/control.sock",
               [this](const Peer& peer, std::string_view line) { return answers_.answer(peer, line); }),
      metrics_(loop_, [this] { return metrics(); }) {
    events_.on_event([this](const NodeEvent& event) {
        control_.broadcast(std::make_shared<const std::string>(
            dump(Json{{"version", control_version}, {"event", to_json(event)}}) + "\n"));
    });
}

int Daemon::run() {
    start();
    ::sd_notify(0, "READY=1");
    const int status = loop_.run();
    ::sd_notify(0, "STOPPING=1");
    dynamic_.restore();
    kernel_.end();
    save();
    log(Priority::info, "ended");
    return status;
}

void Daemon::start() {
    signals_[0] = loop_.on_signal(SIGTERM, [this] { loop_.stop(0); });
    signals_[1] = loop_.on_signal(SIGINT, [this] { loop_.stop(0); });
    signals_[2] = loop_.on_signal(SIGHUP, [this] {
        if (const auto done = reload(); !done) log(Priority::error, "reload: " + done.error());
    });
    if (const auto listening = control_.listen(); !listening) log(Priority::error, listening.error());
    tick_ = loop_.every(1s, [this] { tick(); }, Urgency::first);
    relay_ = loop_.every(100ms, [this] { relay_events(); });
    log(Priority::info, fmt::format("runs for {}", node_.directory()));
    auto history = load_history(node_.directory(), now_s());
    if (history) history_ = std::move(*history);
    else log(Priority::warning, history.error() + "; history begins anew");
    save_at_ = now_s() + between_saves_s;
    tick();
    kernel_.start();
    if (node_.usable()) next_event_ = node_.ledger().event_cursor();
}

void Daemon::tick() {
    policy_is_new_ = node_.refresh() || policy_is_new_;
    if (const auto aside = node_.take_aside(); !aside.empty())
        events_.emit(Priority::warning, "ledger_replaced", Json{{"aside", aside}},
                     fmt::format("the ledger was cut short or overwritten; it was moved to {}, and a new one made: "
                                 "on devices that are open now, nothing is counted in it", aside));
    if (node_.missing() != said_missing_) {
        said_missing_ = node_.missing();
        const bool waits = !said_missing_.empty();
        events_.emit(waits ? Priority::warning : Priority::info, waits ? "waiting" : "found",
                     Json{{"missing", said_missing_}}, waits ? said_missing_ : "policy and ledger are there");
    }
    if (!node_.usable()) return;
    if (policy_is_new_) new_policy();
    policy_is_new_ = false;
    node_.ledger().reap();
    sample();
    if (sampled_at_ >= save_at_) save();
    dynamic_.apply();
    update_status();
}

void Daemon::sample() {
    history_text_.reset();
    const auto now = sampled_at_ = now_s();
    if (!node_.copy_ledger()) return;
    const auto& ledger = node_.ledger_copy();
    for (const auto& [number, device] : ledger.devices())
        for (const auto& row : resource_table)
            history_.add({std::string(default_tenant), device, row.id}, now, ledger.tenant_usage(number, row.id),
                         ledger.peak(number, row.id));
}

void Daemon::save() {
    if (sampled_at_ == 0) return;
    save_at_ = now_s() + between_saves_s;
    const auto saved = save_history(node_.directory(), history_, sampled_at_);
    const auto error = saved ? std::string() : saved.error();
    if (std::exchange(said_unsaved_, error) != error && !error.empty()) log(Priority::error, error);
}

// Every user gets the same: all processes are in the one tenant.
Text Daemon::history(const Request& request) {
    if (!history_text_) history_text_.emplace(history_, now_s());
    return history_text_->answer(request);
}

// The ledger's figure or the kernel's, whichever is higher: a program that goes around the quota fills a device too.
std::uint64_t Daemon::usage(const std::string& device, Resource resource) const {
    std::uint64_t live = 0;
    for (const auto& use : kernel_.uses())
        if (use.device == device) live += use.live[index(resource)];
    return std::max(live, node_.usage(device, resource));
}

// What `systemctl status` shows.
void Daemon::update_status() {
    const auto status = fmt::format("STATUS={} around the quota, {} dynamic rules, {} limits not as configured",
                                    kernel_.bypasses().size(), dynamic_.rules(), dynamic_.changes().size());
    if (status != said_status_) ::sd_notify(0, status.c_str());
    said_status_ = status;
}

void Daemon::new_policy() {
    const auto policy = node_.policy().decompile();
    dynamic_.start(policy.dynamic);
    metrics_port_ = policy.sidecar.metrics_port;
    if (const auto listening = metrics_.listen(static_cast<std::uint16_t>(metrics_port_)); !listening)
        log(Priority::error, listening.error());
    kernel_.new_policy(policy.sidecar);
    if (!node_.writable()) log(Priority::warning, "limits can be watched but not changed: not run as root");
}

// Sends the ledger's events to subscribers.
void Daemon::relay_events() {
    if (!node_.usable()) return;
    const auto& ledger = node_.ledger();
    const auto head = ledger.event_cursor();
    if (head.denials < next_event_.denials || head.repairs < next_event_.repairs) next_event_ = {};  // another ledger
    if (head == next_event_) return;
    if (control_.subscribers() == 0) {
        next_event_ = head;
        return;
    }
    if (!node_.copy_ledger()) return;  // an event may name a device that is new
    const auto devices = node_.ledger_copy().devices();
    for (const auto& [number, event] : read_events(ledger.path(), next_event_))
        control_.broadcast(std::make_shared<const std::string>(
            dump(Json{{"version", control_version}, {"event", event_json(number, event, devices)}}) + "\n"));
}

Result<std::string> Daemon::reload() {
    ::sd_notify(0, "RELOADING=1");
    const auto done = reload_policy(policy_file_, node_.directory());
    ::sd_notify(0, "READY=1");
    if (!done) return Error{done.error()};
    for (const auto& warning : done->warnings) log(Priority::warning, warning);
    tick();
    auto said = fmt::format("{} is in force, mode {}", policy_file_, name(done->mode));
    log(Priority::notice, said);
    return said;
}

std::string Daemon::metrics() {
    MetricsInput input;
    if (node_.usable()) {
        node_.copy_ledger(LedgerCopy::Parts::usage_and_activity);
        input.tenants.push_back(take_snapshot(node_.ledger_copy(), node_.policy()));
        const auto recorded = node_.ledger().event_cursor();
        input.ledger_events = recorded.denials + recorded.repairs;
    }
    input.events = events_.counts();
    input.denied = kernel_.denied();
    input.clients = control_.clients();
    input.changed_limits = dynamic_.changes().size();
    return metrics_text(input);
}

Json Daemon::status() const {
    return Json{{"version", control_version},
                {"sidecar", {{"directory", node_.directory()},
                             {"missing", node_.missing()},
                             {"may_change_limits", node_.writable()},
                             {"clients", control_.clients()},
                             {"subscribers", control_.subscribers()},
                             {"dropped_clients", control_.dropped()},
                             {"dynamic_rules", dynamic_.rules()},
                             {"changed_limits", dynamic_.changes().size()},
                             {"metrics_port", metrics_port_},
                             {"metrics_served", metrics_.listening()}}},
                {"kernel", kernel_.status()}};
}

}  // namespace rdmaquota
