// rdmaquota explain: why a creation failed, and what helps.
#include <unistd.h>

#include <ctime>
#include <memory>
#include <optional>
#include <set>

#include <fmt/core.h>

#include "tools/common/events/event_text.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/commands/child.hpp"
#include "tools/rdmaquota/explain/cause.hpp"
#include "tools/rdmaquota/explain/event_process.hpp"
#include "tools/rdmaquota/view/event_filter.hpp"
#include "tools/rdmaquota/view/event_source.hpp"

namespace rdmaquota {
namespace {

struct Options {
    int pid = 0;
    bool json = false;
    std::vector<std::string> program;
};

// Which events are meant.
struct Meant {
    std::string since;
    std::optional<EventProcess> process = {};  // else any
    bool own = false;                          // of this user's processes only
    bool latest_run = false;  // the last event of each process that was denied something within a minute before the last of all
};

// Processes of one run, such as the ranks of a job.
constexpr std::time_t most_apart_s = 60;
constexpr std::size_t most_of_run = 16;

bool is_meant(const Json& event, const Meant& meant) {
    if (event.value("time", "") < meant.since) return false;
    const auto uid = event.find("uid");
    if (meant.process && !meant.process->is_of(event)) return false;
    return !meant.own || uid == event.end() || (uid->is_number() && *uid == ::geteuid());
}

std::time_t second_of(const Json& event) {
    std::tm time{};
    return ::strptime(event.value("time", "").c_str(), "%Y-%m-%dT%H:%M:%S", &time) == nullptr ? 0 : ::timegm(&time);
}

// The latest first, each said once.
Causes of_events(const Session& session, const Meant& meant) {
    EventSource source(session.directory);
    Causes causes;
    std::set<std::string> said;
    if (!source.open()) return causes;
    const auto events = source.take();
    std::time_t latest = 0;
    std::set<std::pair<std::uint64_t, bool>> processes;  // that a delay does not hide the denial before it
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
        if (!is_meant(event->second, meant)) continue;
        auto its_causes = causes_of(event->second, session.directory);
        if (its_causes.empty()) continue;  // such as that it ended, which is later than what was denied
        if (meant.latest_run) {
            const auto second = second_of(event->second);
            if (latest == 0) latest = second;
            if (latest - second > most_apart_s || processes.size() == most_of_run) break;
            const bool delayed = event->second.value("kind", "") == "delayed";
            if (!processes.emplace(event->second.value("pid", std::uint64_t{0}), delayed).second) continue;
        }
        for (auto& cause : its_causes) {
            if (!said.insert(cause.kind + cause.text).second) continue;
            cause.text = fmt::format("{}, {}", event_line(event->second).substr(11, 8), cause.text);
            causes.push_back(std::move(cause));
        }
    }
    return causes;
}

std::string now() {
    timespec time{};
    ::clock_gettime(CLOCK_REALTIME, &time);
    return event_time(
        static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec), false);
}

void print(const Causes& causes) {
    const auto terminal = standard_output();
    if (causes.empty())
        fmt::print("{}\n",
                   wrapped(terminal,
                           "nothing is known to rdmaquota that was denied or refused; an error such as EINVAL or EPERM "
                           "is of the call's own arguments or rights",
                           0));
    for (const auto& cause : causes) {
        fmt::print("{}\n", wrapped(terminal, fmt::format("{}: {}", cause.kind, cause.text), 2));
        if (!cause.helps.empty()) fmt::print("  {}\n", wrapped(terminal, cause.helps, 4));
    }
}

void print_json(const Causes& causes) {
    Json list = Json::array();
    for (const auto& cause : causes)
        list.push_back({{"kind", cause.kind},
                        {"text", cause.text},
                        {"helps", cause.helps.empty() ? Json(nullptr) : Json(cause.helps)}});
    fmt::print("{}\n", dump(Json{{"version", 1}, {"causes", std::move(list)}}));
}

bool is_alive(int pid) { return ::access(fmt::format("/proc/{}", pid).c_str(), F_OK) == 0; }

// Of the program, once it has ended; of a process; or the last of all.
Result<Causes> past_causes(const Options& options, const Session& session) {
    if (options.program.empty()) {
        Meant meant{{}, {}, ::geteuid() != 0 && options.pid == 0, options.pid == 0};
        if (options.pid != 0) meant.process.emplace(static_cast<std::uint32_t>(options.pid));
        return of_events(session, meant);
    }
    const auto begin = now();
    const auto end = run_child(options.program);
    if (!end) return Error{end.error()};
    if (end->exec_error != 0) return Error{fmt::format("cannot run '{}'", options.program.front())};
    return of_events(session, {begin, {}, true});
}

int explain(const Options& options, const Session& session) {
    if (options.pid != 0 && !options.program.empty()) return wrong_usage("--pid and a program exclude each other");
    const int pid = options.pid == 0 ? ::getpid() : options.pid;
    if (!is_alive(pid)) warn(fmt::format("process {} has ended; only its events are known", pid));
    auto causes = past_causes(options, session);
    if (!causes) return failed(causes.error());
    if (is_alive(pid))
        for (auto& cause : causes_now(pid, session.directory)) causes->push_back(std::move(cause));
    options.json ? print_json(*causes) : print(*causes);
    return status_done;
}

}  // namespace

void add_explain(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("explain", "Say why a creation failed or was slow, and what helps");
    command.positive("--pid", "PID", options->pid, "Of this process; else of the last one that was denied something");
    command.flag("--json", options->json, "Write JSON");
    command.program(options->program);
    command.footer("Example: rdmaquota explain -- ibv_rc_pingpong");
    command.action([options, &session] { return explain(*options, session); });
}

}  // namespace rdmaquota
