#include "tools/rdmaquotad/daemon.hpp"

#include <csignal>

#include <sys/statvfs.h>
#include <unistd.h>

#include <systemd/sd-daemon.h>

#include <fmt/core.h>

#include "tools/common/cluster/ceilings_json.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/limits/device_selectors.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/common/guard/guard_off.hpp"
#include "tools/common/guard/guard_pins.hpp"
#include "tools/rdmaquotad/loop/log.hpp"
#include "tools/rdmaquotad/node/node_usage.hpp"
#include "tools/rdmaquotad/dynamic/capacity.hpp"

namespace rdmaquota {
namespace {

using namespace std::chrono_literals;

constexpr auto time_for_checks = 100ms, time_for_looks = 150ms;  // of one tick
constexpr std::uint64_t ticks_between_removals = 30;

// A tenant that the sidecar made shares a file system with others, which its members could fill.
bool is_half_full(const std::string& directory) {
    struct statvfs status {};
    return ::statvfs(directory.c_str(), &status) == 0 &&
           (status.f_bavail < status.f_blocks / 2 || status.f_favail < status.f_files / 2);
}

// Nobody has to have entered the event's device in the ledger.
std::string device_of(const Json& event) {
    const auto device = event.find("device");
    return device != event.end() && device->is_string() ? device->get<std::string>() : std::string();
}

void say(const Result<void>& done) {
    if (!done) log(Priority::error, done.error());
}

void say_once(std::string& said, const Result<void>& done) {
    const auto error = done ? std::string() : done.error();
    if (std::exchange(said, error) != error && !error.empty()) log(Priority::error, error);
}

}  // namespace

Daemon::Daemon(std::string directory)
    : node_(std::move(directory)),
      guard_(loop_, node_, events_, [this](const ProcessSubject& subject) { return make_tenant(subject); }),
      kernel_(loop_, node_, events_, [this](GuardProgram* program) { guard_.follow(program); }),
      history_(node_),
      dynamic_(node_, events_, capacity),
      soft_limits_(node_, events_),
      grants_(node_, events_),
      ceilings_(node_, grants_),
      instances_(node_),
      unknown_names_(node_),
      views_(node_),
      visibility_(node_),
      answers_({node_, events_, views_, visibility_, instances_,
                [this](const Answers::Sees& sees) { return status(sees); },
                [this](const Answers::Sees& sees) { return kernel_.bypasses_json(sees); },
                [this](const Request& request, const Answers::Sees& sees) { return history_.answer(request, sees); },
                [this](const std::string& tenant) { return grant(tenant); },
                [this] { return divide(); },
                [this](const Answers::Sees& sees) { return guard_status(sees); },
                [this] { return guard_off(); },
                [this](const Delivery* delivery) -> Result<Json> {
                    auto report = ceilings_.report(delivery);
                    if (!report) return Error{report.error()};
                    return report_json(*report);
                },
                [this](const Peer& peer, bool renewed) { return web_address(peer, renewed); }}),
      control_(loop_, [this](const Peer& peer, std::string_view line) { return answers_.answer(peer, line); }),
      tenant_sockets_(node_, control_),
      relay_events_(node_, visibility_, control_),
      recent_(node_.directory()),
      capacity_(told_by_device),
      capacity_file_(node_.directory()),
      percentages_(node_, capacity_),
      findings_(node_.directory()),
      web_state_({node_, views_, visibility_, events_, recent_, capacity_, churn_, findings_,
                  [this](const Answers::Sees& sees) { return kernel_.bypasses_json(sees); },
                  [this](const Answers::Sees& sees) { return guard_status(sees); },
                  [this] { return Json{{"kernel", kernel_.status([](const std::string&) { return false; })}}; }}),
      web_page_({[this](const Peer& viewer) { return web_state_.text(viewer); },
                 [this](const Peer& viewer) {
                     return history_.last_hour([this, &viewer](const std::string& tenant) {
                         return viewer.privileged ? tenant == node_tenant : visibility_.sees_name(viewer, tenant);
                     });
                 },
                 [this](const Peer& viewer, const SeriesName& series) {
                     return visibility_.sees_name(viewer, series.tenant) ? history_.one(series) : nullptr;
                 },
                 [this](const Peer& viewer, const std::string& tenant, std::uint32_t pid) {
                     return web_state_.tenant(viewer, tenant, pid);
                 }}),
      node_metrics_({node_, views_, events_, kernel_, guard_, capacity_, [this] { return control_.clients(); }}),
      metrics_page_([this] { return node_metrics_.text(); }),
      metrics_(loop_, "metrics", [this](const HttpRequest& request) { return metrics_page_.answer(request); }),
      web_(loop_, "web page", [this](const HttpRequest& request) { return web_page_.answer(request); }) {
    relay_events_.on_ledger_event([this](const Tenant& tenant, std::uint64_t number, const Event& event, const Json& json,
                                         std::uint64_t more) {
        recent_.add(tenant, number, event, json);
        node_metrics_.add(tenant, device_of(json), event, more);
        if (more != 0 && event.kind == EventKind::refused_by_device && is_device_of(machine_devices(), device_of(json)))
            capacity_.add(device_of(json), event);
    });
    events_.on_event([this](Priority priority, const NodeEvent& event) {
        node_metrics_.add(event);
        return relay_events_.send(priority, event);
    });
    // A tenant without a share would be denied its first object where moving one takes longer than grant_wait.
    instances_.on_made([this](const std::string& key) {
        if (const auto done = grants_.pass_for(key); !done) log(Priority::error, done.error());
    });
    grants_.ask_kernel([this](std::string_view tenant, std::vector<CountedUse>& uses) { guard_.add_uses(tenant, uses); });
}

int Daemon::run() {
    start();
    ::sd_notify(0, "READY=1");
    const int status = loop_.run();
    ::sd_notify(0, "STOPPING=1");
    dynamic_.restore();
    kernel_.end();
    history_.save();
    log(Priority::info, "ended");
    return status;
}

void Daemon::start() {
    signals_[0] = loop_.on_signal(SIGTERM, [this] { loop_.stop(0); });
    signals_[1] = loop_.on_signal(SIGINT, [this] { loop_.stop(0); });
    if (const auto listening = control_.listen(control_path(node_.directory())); !listening) log(Priority::error, listening.error());
    tick_ = loop_.every(1s, [this] { tick(); }, Urgency::first);
    relay_ = loop_.every(100ms, [this] { relay_events_.send_new(); });
    shares_ = loop_.every(100ms, [this] { grants_.go_on(); });
    log(Priority::info, fmt::format("runs for {}", node_.directory()));
    ::unlink(guard_off_path(node_.directory()).c_str());
    if (const auto loaded = history_.load(); !loaded) log(Priority::warning, loaded.error());
    capacity_file_.load(capacity_);
    tick();
    kernel_.start();
    guard_.update();  // holds when this process says that it is ready
}

void Daemon::tick() {
    refresh();
    if (!node_.usable()) return;
    follow_devices();
    const auto names = machine_devices(), in_policy = policy_devices();
    node_.check(time_for_checks);
    node_.look({names.begin(), names.end()}, time_for_looks);
    tell_of_ledgers();
    soft_limits_.look();
    history_.sample();
    percentages_.resolve(names);
    const NodeUsage usage(node_, kernel_.uses(), [this](Resource kind) { return kernel_.counts(kind); });
    dynamic_.apply(in_policy, usage);
    capacity_.look(names, usage);
    if (const auto saved = capacity_file_.save(capacity_); !saved) log(Priority::warning, saved.error());
    churn_.add(ChurnRates::Clock::now(), kernel_.churn());
    recent_.keep([this](const std::string& key) { return node_.find(key) != nullptr; });
    say_once(said_ceilings_, ceilings_.look_after());
    guard_.update();
    if (guard_.was_turned_off())
        if (const auto done = guard_off(); !done) log(Priority::error, done.error());
    grants_.pass(in_policy);
    look_after_tenants();
    update_status();
}

void Daemon::follow_devices() {
    if (!node_.writable() || std::exchange(devices_, UverbsDevices::now()) == UverbsDevices::now()) return;
    if (const auto bound = bind_devices_again(node_.directory()); !bound) log(Priority::error, bound.error());
}

void Daemon::refresh() {
    node_.refresh();
    if (node_.missing() != said_missing_.value_or("")) {
        const bool waits = !node_.missing().empty();
        events_.emit(waits ? Priority::warning : Priority::info, waits ? SidecarKind("waiting") : SidecarKind("found"),
                     Json{{"missing", node_.missing()}}, waits ? node_.missing() : "policy and ledgers are there");
    }
    said_missing_ = node_.missing();
    const auto policy = node_.policy() != nullptr ? node_.policy()->id() : 0;
    if (!node_.usable() || policy_ == policy) return;
    policy_ = policy;
    new_policy();
}

void Daemon::new_policy() {
    const auto& policy = node_.decompiled();
    dynamic_.start(policy.dynamic);
    asked_ = policy.sidecar;
    web_page_.set_access(asked_.web);
    listen_for_metrics();
    listen_for_browsers();
    guard_.set_mode(policy.sidecar.guard);
    kernel_.new_policy(::access(guard_off_path(node_.directory()).c_str(), F_OK) == 0 ? without_guard() : policy.sidecar);
    if (!node_.writable()) log(Priority::warning, "limits can be watched but not changed: not run as root");
}

// Serves nothing where a file cannot be used: never without the protection that the policy asks for.
void Daemon::listen_for_metrics() {
    auto listener = metrics_listener(asked_);
    if (!listener) log(Priority::error, fmt::format("no metrics: {}; then run: rdmaquota reload", listener.error()));
    say(metrics_.listen(listener ? std::move(*listener) : Listener{}));
}

void Daemon::listen_for_browsers() {
    Listener page;
    page.port = static_cast<std::uint16_t>(asked_.web_port);
    page.kept = true;
    if (!web_.has_to_listen(page)) return;
    say(web_.listen(std::move(page)));
    web_page_.sessions().begin(node_.directory() + "/web-sessions.json", web_.kept());
}

Result<Json> Daemon::web_address(const Peer& peer, bool renewed) {
    if (!web_.listening())
        return Error{"there is no web page; write web_port = 9838 below [sidecar] in the policy file, and put it in force "
                     "with 'rdmaquota reload'"};
    const bool open = asked_.web == WebAccess::all;
    if (renewed) web_page_.sessions().forget(peer);
    return Json{{"port", web_.port()}, {"token", open ? Json(nullptr) : Json(web_page_.sessions().of(peer).token)}};
}

// Of ledgers that were replaced here, or cannot be used.
void Daemon::tell_of_ledgers() {
    for (auto* tenant : node_.with_ledger()) {
        auto& ledger = tenant->ledger();
        if (const auto aside = ledger.take_aside(); !aside.empty())
            events_.emit(Priority::warning, "ledger_replaced", Json{{"tenant", tenant->name()}, {"aside", aside}},
                         fmt::format("the ledger of tenant {} was cut short or overwritten; it was moved to {}, and a "
                                     "new one made: on devices that are open now, nothing is counted in it",
                                     tenant->name(), aside));
        const auto said = said_unusable_.find(tenant->name());
        if (ledger.missing() == (said == said_unusable_.end() ? "" : said->second)) continue;
        const bool waits = !ledger.missing().empty();
        events_.emit(waits ? Priority::warning : Priority::info, waits ? SidecarKind("waiting") : SidecarKind("found"),
                     Json{{"tenant", tenant->name()}, {"missing", ledger.missing()}},
                     waits ? ledger.missing() : fmt::format("the ledger of tenant {} is there", tenant->name()));
        if (waits) said_unusable_[tenant->name()] = ledger.missing();
        else said_unusable_.erase(tenant->name());
    }
}

void Daemon::look_after_tenants() {
    const auto known = unknown_names_.try_again();
    say_once(said_uncompiled_, known ? Result<void>() : Error{known.error()});
    if (known)
        for (const auto& name : *known) log(Priority::notice, fmt::format("{} is known now; its matches hold", name));
    say_once(said_unheard_, tenant_sockets_.follow());
    if (++ticks_ % ticks_between_removals == 0) instances_.remove_unused();
    if (is_half_full(node_.directory()))
        for (const auto* tenant : node_.with_ledger()) Ledger::cut_growth(tenant->ledger().path());
}

// For a program that waits. Nothing else would do it soon enough: the timer is there as long as somebody waits.
Result<std::function<bool()>> Daemon::grant(const std::string& tenant) {
    if (node_.find(tenant) == nullptr) refresh();
    const auto asked = ShareMover::Clock::now();
    const auto done = grants_.pass_for(tenant);
    if (!done) return Error{done.error()};
    auto of_cluster = ask_cluster(tenant);
    if (*done && !of_cluster) return std::function<bool()>();
    if (!askers_) askers_ = loop_.every(2ms, [this] { serve_askers(); });
    return std::function<bool()>([this, asked, divided = *done, of_cluster] {
        return (divided || grants_.has_read_all_since(asked)) && (!of_cluster || of_cluster());
    });
}

// Tells the agent that somebody asks. The answer waits for what the cluster assigns, for as long as a program does.
std::function<bool()> Daemon::ask_cluster(const std::string& tenant) {
    if (!ceilings_.may_raise(tenant)) return {};
    static const auto word = std::make_shared<const std::string>("{\"cluster\":\"asked\"}\n");
    control_.broadcast(word, [](const Peer& peer) { return peer.privileged; });
    const auto end = std::chrono::steady_clock::now() + std::chrono::milliseconds(cluster_wait_ms);
    return [this, end, before = ceilings_.taken()] { return ceilings_.taken() != before || std::chrono::steady_clock::now() >= end; };
}

void Daemon::serve_askers() {
    grants_.look_again();
    control_.send_held();
    if (!control_.holds_answers()) askers_ = {};
}

// For a program that the guard does not know. One whose tenant cannot be made is in `default`.
bool Daemon::make_tenant(const ProcessSubject& subject) {
    const auto user = subject.view().user;
    if (!user) return true;
    const auto made = instances_.make_for(subject, *user);
    if (made && made->made) log(Priority::info, fmt::format("tenant {} made for uid {}", made->tenant, *user));
    return made || !instances_.is_making();
}

// For a command that changed limits or tenants.
Result<void> Daemon::divide() {
    refresh();
    percentages_.resolve(machine_devices());
    guard_.update();
    return grants_.pass_at_once();
}

Sidecar Daemon::without_guard() const {
    auto asked = node_.decompiled().sidecar;
    asked.guard = GuardMode::off;
    return asked;
}

// Until the policy is put in force again, or the sidecar starts again.
Result<std::string> Daemon::guard_off() {
    if (const auto noted = replace_file(guard_off_path(node_.directory()), ""); !noted) log(Priority::error, noted.error());
    kernel_.new_policy(without_guard());
    if (const auto done = GuardPins::remove_all(); !done) return Error{done.error()};
    log(Priority::notice, "the guard was taken out of the kernel");
    return std::string("off");
}

Json Daemon::guard_status(const Answers::Sees& sees) const {
    auto json = guard_.status(sees);
    if (asked_.guard != GuardMode::off && !guard_.is_on())
        for (const auto& line : kernel_.blind()) json["problems"].push_back(line);
    return json;
}

// What `systemctl status` shows.
void Daemon::update_status() {
    const auto status =
        fmt::format("STATUS={} tenants, {} around the quota, {} dynamic rules, {} limits not as configured",
                    node_.with_ledger().size(), kernel_.bypasses().size(), dynamic_.rules(), dynamic_.held());
    if (status != said_status_) ::sd_notify(0, status.c_str());
    said_status_ = status;
}

Json Daemon::status(const Answers::Sees& sees) const {
    auto missing = node_.missing();
    for (const auto* tenant : node_.with_ledger())
        if (missing.empty() && sees(tenant->key())) missing = tenant->ledger().missing();
    return Json{{"version", control_version},
                {"sidecar",
                 {{"directory", node_.directory()},
                  {"missing", missing},
                  {"tenants", node_.with_ledger().size()},
                  {"rounds", ticks_},
                  {"may_change_limits", node_.writable()},
                  {"clients", control_.clients()},
                  {"subscribers", control_.subscribers()},
                  {"dropped_clients", control_.dropped()},
                  {"dynamic_rules", dynamic_.rules()},
                  {"changed_limits", dynamic_.held()},
                  {"moved_shares", grants_.moves()},
                  {"debts", grants_.debts().size()},
                  {"metrics_port", asked_.metrics_port},
                  {"metrics_address", asked_.metrics.address},
                  {"metrics_served", metrics_.listening()},
                  {"web_port", asked_.web_port},
                  {"web_served", web_.listening()}}},
                {"kernel", kernel_.status(sees)},
                {"usage", capacity_.in_use()},
                {"capacity", capacity_.learned()}};
}

}  // namespace rdmaquota
