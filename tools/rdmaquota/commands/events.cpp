// rdmaquota events: what was denied and repaired, oldest first.
#include <sys/stat.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/core.h>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "tools/common/json.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/event_text.hpp"
#include "tools/common/slurm_jobs.hpp"
#include "tools/common/tenants.hpp"

namespace rdmaquota {
namespace {

struct Options {
    bool follow = false;
    bool json = false;
};

constexpr long poll_interval_ns = 100'000'000;

using Lines = std::multimap<std::string, std::string>;  // by time

// The events of one tenant's ledger.
class LedgerEvents {
public:
    explicit LedgerEvents(const TenantPlace& place) : place_(place) {}

    Result<void> open() {
        inode_ = inode_now();
        auto ledger = Ledger::open(ledger_path(place_.here));
        if (!ledger) return Error{ledger.error()};
        ledger_.emplace(std::move(ledger.value()));
        if (const auto limits = LimitsSegment::open(limits_path(place_.here))) tenant_ = limits->tenant();
        next_ = {};
        return {};
    }

    const std::string& key() const noexcept { return place_.key; }

    // Whether another ledger has taken the place of the one that is open. While there is none, the old one goes on.
    bool replaced() const { return inode_now() != 0 && inode_now() != inode_; }

    void add_new(bool json, Lines& lines) {
        const auto devices = ledger_->devices();
        for (const auto& [number, event] : ledger_->events(next_))
            lines.emplace(event_time(event.time_ns, false), json ? dump(event_json(number, event, devices, tenant_))
                                                                 : event_line(event, devices, tenant_));
    }

private:
    ino_t inode_now() const {
        struct stat status {};
        return ::stat(ledger_path(place_.here).c_str(), &status) == 0 ? status.st_ino : 0;
    }

    TenantPlace place_;
    std::string tenant_;
    std::optional<Ledger> ledger_;
    EventCursor next_;
    ino_t inode_ = 0;
};

// The events of all ledgers that this user may read, of Slurm jobs, and of the sidecar.
class Source {
public:
    explicit Source(const std::string& directory) : directory_(directory) {}

    // Opens what is new or was replaced. An error when there is nothing to read.
    Result<void> open() {
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

    // Prints what came since the last call, with those of Slurm jobs and of the sidecar where one runs, sorted by time.
    void print_new(bool json) {
        Lines lines;
        for (auto& ledger : ledgers_) ledger.add_new(json, lines);
        add_jobs(json, lines);
        add_sidecar(json, lines);
        for (const auto& [time, line] : lines) fmt::print("{}\n", line);
    }

private:
    Result<void> nothing() const {
        const auto place = find_tenant(directory_, "");
        if (!place) return Error{place.error()};
        const auto ledger = Ledger::open(ledger_path(place->here));
        return ledger ? Result<void>() : Error{ledger.error()};
    }

    void add_jobs(bool json, Lines& lines) {
        for (const auto& event : job_events(directory_)) {
            auto time = event.value("time", "");
            if (time <= last_of_jobs_) continue;
            lines.emplace(time, json ? dump(event) : sidecar_line(event));
            last_of_jobs_ = std::move(time);
        }
    }

    void add_sidecar(bool json, Lines& lines) {
        const auto now = std::time(nullptr);
        if (now == asked_) return;
        asked_ = now;
        const auto answer = ask_sidecar(directory_, Json{{"request", "events"}, {"since", next_of_sidecar_}});
        if (!answer) return;
        const auto next = answer->value("next", std::uint64_t{0});
        for (const auto& event : answer->value("events", Json::array()))
            lines.emplace(event.value("time", ""), json ? dump(event) : sidecar_line(event));
        next_of_sidecar_ = next < next_of_sidecar_ ? 0 : next;  // a new sidecar counts from 0
    }

    std::string directory_;
    std::vector<LedgerEvents> ledgers_;
    std::string last_of_jobs_;  // the time of the last one
    std::uint64_t next_of_sidecar_ = 0;
    std::time_t asked_ = 0;
};

// True when a signal asks us to end.
bool wait_for_interrupt(const sigset_t& signals) {
    const timespec interval{0, poll_interval_ns};
    return ::sigtimedwait(&signals, nullptr, &interval) > 0;
}

int follow(Source& source, const Options& options) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    std::string said;
    do {
        source.print_new(options.json);
        if (std::fflush(stdout) != 0) return failed("cannot write the output");
        if (const auto opened = source.open(); !opened && opened.error() != said) warn(said = opened.error());
    } while (!wait_for_interrupt(signals));
    return status_done;
}

int events(const Options& options, const Session& session) {
    Source source(session.directory);
    if (const auto opened = source.open(); !opened) return failed(opened.error());
    if (options.follow) return follow(source, options);
    source.print_new(options.json);
    return status_done;
}

}  // namespace

void add_events(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("events", "List denials and repairs, oldest first; the last 1,024 denials and 256 repairs are kept");
    command.flag("-f,--follow", options->follow, "Go on and print what comes, until interrupted");
    command.flag("--json", options->json, "Write one JSON object per line");
    command.action([options, &session] { return events(*options, session); });
}

}  // namespace rdmaquota
