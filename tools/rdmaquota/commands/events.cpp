// rdmaquota events: what was denied and repaired, oldest first.
#include <csignal>
#include <cstdio>
#include <ctime>
#include <memory>

#include <fmt/core.h>

#include "tools/common/events/event_text.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/view/event_filter.hpp"
#include "tools/rdmaquota/view/event_source.hpp"

namespace rdmaquota {
namespace {

struct Options {
    bool follow = false;
    bool json = false;
    std::string since;
    EventFilter filter;
};

constexpr long poll_interval_ns = 100'000'000;
constexpr std::size_t hanging_indent = 24;  // below a line's kind

// False: there was none that is asked for.
bool print(const EventsByTime& events, const Options& options, const Terminal& terminal) {
    bool any = false;
    for (const auto& [time, event] : events) {
        if (!options.filter.admits(event)) continue;
        any = true;
        fmt::print("{}\n", options.json ? dump(event) : wrapped(terminal, event_line(event), hanging_indent));
    }
    return any;
}

// What is there already; with --since, also what only the journal still has. A person is told that there is nothing; a program that
// reads lines is not.
void print_first(EventSource& source, const Options& options, const Terminal& terminal) {
    auto events = source.take();
    if (!options.filter.since.empty()) source.add_past(options.filter.since, events);
    if (print(events, options, terminal) || !terminal.is_terminal || options.json) return;
    fmt::print("nothing of what was asked for happened{}\n", options.since.empty() ? "" : " since " + printable(options.since));
}

// True when a signal asks us to end.
bool wait_for_interrupt(const sigset_t& signals) {
    const timespec interval{0, poll_interval_ns};
    return ::sigtimedwait(&signals, nullptr, &interval) > 0;
}

int follow(EventSource& source, const Options& options, const Terminal& terminal) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    ::sigprocmask(SIG_BLOCK, &signals, nullptr);
    std::string said;
    print_first(source, options, terminal);
    do {
        print(source.take(), options, terminal);
        if (std::fflush(stdout) != 0) return failed("cannot write the output");
        if (const auto opened = source.open(); !opened && opened.error() != said) warn(said = opened.error());
    } while (!wait_for_interrupt(signals));
    return status_done;
}

int events(Options& options, const Session& session) {
    if (const auto known = check_kinds(options.filter.kinds); !known) return wrong_usage(known.error());
    if (!options.since.empty()) {
        auto since = parse_since(options.since, std::time(nullptr));
        if (!since) return wrong_usage(since.error());
        options.filter.since = std::move(*since);
    }
    EventSource source(session.directory);
    if (const auto opened = source.open(); !opened) return failed(opened.error());
    const auto terminal = standard_output();
    if (options.follow) return follow(source, options, terminal);
    print_first(source, options, terminal);
    return status_done;
}

}  // namespace

void add_events(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command(
        "events", "List denials and repairs, oldest first; the last 1,024 denials and 256 repairs are kept");
    command.flag("-f,--follow", options->follow, "Go on and print what comes, until interrupted");
    command.option("--since", "TIME", options->since, "Not what is older: 90s, 5min, 1h, 2d, 12:30 or 2026-01-31");
    command.list("--kind", "KIND", options->filter.kinds, "Only events of this kind, such as denied");
    command.list("--tenant", "TENANT", options->filter.tenants, "Only of this tenant");
    command.list("--user", "USER", options->filter.users, "Only of this user's programs");
    command.list("--device", "DEVICE", options->filter.devices, "Only of this device and its ports");
    command.flag("--json", options->json, "Write one JSON object per line");
    command.action([options, &session] { return events(*options, session); });
}

}  // namespace rdmaquota
