// rdmaquota doctor: whether the installation holds programs, or one process, to the quota, and if not, why.
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/doctor/findings.hpp"
#include "tools/rdmaquota/doctor/guard.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/text/terminal.hpp"

namespace rdmaquota {
namespace {

struct Options {
    int pid = 0;
    bool json = false;
};

constexpr const char* never_covered =
    "statically linked programs, programs that talk to the kernel's uverbs device themselves, those that find another "
    "libmlx5 by RPATH, RUNPATH, LD_LIBRARY_PATH or a path, and what DV calls create that are not counted, see "
    "rdmaquota-provider(7)";

const char* word(Level level) {
    switch (level) {
        case Level::ok:
            return "ok";
        case Level::warning:
            return "warning";
        case Level::problem:
            break;
    }
    return "problem";
}

Colour colour(Level level) {
    if (level == Level::ok) return Colour::green;
    return level == Level::warning ? Colour::yellow : Colour::red;
}

std::size_t count(const Findings& findings, Level level) {
    std::size_t number = 0;
    for (const auto& finding : findings) number += finding.level == level;
    return number;
}

void print_json(const Findings& findings, bool held) {
    Json lines = Json::array();
    for (const auto& finding : findings)
        lines.push_back({{"level", word(finding.level)}, {"subject", finding.subject}, {"text", finding.text}});
    fmt::print("{}\n",
               dump(Json{{"version", 1}, {"verdict", held ? "ok" : "problem"}, {"findings", std::move(lines)}}));
}

void print_text(const Findings& findings, const Options& options, bool guarded) {
    const auto terminal = standard_output();
    for (const auto& finding : findings) {
        const auto level = fmt::format("{:<8}", word(finding.level));
        const auto line = fmt::format("{} {}: {}", level, printable(finding.subject), printable(finding.text));
        fmt::print("{}{}\n", coloured(terminal, colour(finding.level), level),
                   wrapped(terminal, line, level.size() + 1).substr(level.size()));
    }
    const auto problems = count(findings, Level::problem);
    const auto* what = options.pid > 0 ? "this process" : "this node";
    if (problems > 0) return fmt::print("\n{} has {} problem{}\n", what, problems, problems == 1 ? "" : "s");
    if (options.pid > 0) return fmt::print("\nwhat {} has open is held to the quota\n", what);
    const auto verdict = guarded ? fmt::format("programs on {} are held to the quota, those that go around the library by the guard", what)
                                 : fmt::format("programs on {} are held to the quota; never are: {}", what, never_covered);
    fmt::print("\n{}\n", wrapped(terminal, verdict, 2));
}

int examine(const Options& options, const Session& session) {
    const auto findings =
        options.pid > 0 ? examine_process(options.pid, session.directory) : examine_node(session.directory);
    const bool held = count(findings, Level::problem) == 0;
    if (options.json)
        print_json(findings, held);
    else
        print_text(findings, options, guard_refuses(session.directory));
    return held ? status_done : status_failed;
}

}  // namespace

void add_doctor(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("doctor", "Examine this node or one process: what is held to the quota, and why not");
    command.positive("--pid", "PID", options->pid, "Examine this process instead of the node");
    command.flag("--json", options->json, "Write JSON");
    command.action([options, &session] { return examine(*options, session); });
}

}  // namespace rdmaquota
