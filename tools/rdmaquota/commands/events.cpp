// rdmaquota events: what was denied and repaired, oldest first.
#include <sys/stat.h>

#include <csignal>
#include <cstdio>
#include <ctime>
#include <map>
#include <memory>
#include <optional>

#include <fmt/core.h>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "tools/common/json.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/event_text.hpp"

namespace rdmaquota {
namespace {

struct Options {
    bool follow = false;
    bool json = false;
};

constexpr long poll_interval_ns = 100'000'000;

// The events of a directory's ledger, and of its sidecar.
class Source {
public:
    explicit Source(const std::string& directory) : directory_(directory), path_(ledger_path(directory)) {}

    Result<void> open() {
        inode_ = inode_now();
        auto ledger = Ledger::open(path_);
        if (!ledger) return Error{ledger.error()};
        ledger_.emplace(std::move(ledger.value()));
        next_ = {};
        return {};
    }

    // Whether another ledger has taken the place of the one that is open. While there is none, the old one goes on.
    bool replaced() const { return inode_now() != 0 && inode_now() != inode_; }

    // Prints what came since the last call, with the events of the sidecar where one runs, sorted by time.
    void print_new(bool json) {
        std::multimap<std::string, std::string> lines;
        const auto devices = ledger_->devices();
        for (const auto& [number, event] : ledger_->events(next_))
            lines.emplace(event_time(event.time_ns, false),
                          json ? dump(event_json(number, event, devices)) : event_line(event, devices));
        add_sidecar(json, lines);
        for (const auto& [time, line] : lines) fmt::print("{}\n", line);
    }

private:
    void add_sidecar(bool json, std::multimap<std::string, std::string>& lines) {
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

    ino_t inode_now() const {
        struct stat status {};
        return ::stat(path_.c_str(), &status) == 0 ? status.st_ino : 0;
    }

    std::string directory_;
    std::string path_;
    std::optional<Ledger> ledger_;
    EventCursor next_;
    ino_t inode_ = 0;
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
    do {
        source.print_new(options.json);
        if (std::fflush(stdout) != 0) return failed("cannot write the output");
        if (!source.replaced()) continue;
        if (const auto opened = source.open(); !opened) warn(opened.error());
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
