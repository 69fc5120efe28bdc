// What the commands have in common. Each has a file of its own, commands/NAME.cpp, whose add_NAME declares the command
// on the command line; its action does the work and returns the exit status.
#pragma once

#include <string>
#include <string_view>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "tools/common/command_line.hpp"
#include "tools/common/limits/reload.hpp"

namespace rdmaquota {

// Exit statuses; `run` returns its program's own status instead.
inline constexpr int status_done = 0;
inline constexpr int status_failed = 1;
inline constexpr int status_usage = 2;

struct Session {
    std::string directory;  // of the policy segment and the ledgers; known when an action is called
};

void add_init(CommandLine& line, const Session& session);
void add_run(CommandLine& line);
void add_show(CommandLine& line, const Session& session);
void add_set(CommandLine& line, const Session& session);
void add_unset(CommandLine& line, const Session& session);
void add_which(CommandLine& line, const Session& session);
void add_suggest(CommandLine& line, const Session& session);
void add_explain(CommandLine& line, const Session& session);
void add_tenant(CommandLine& line, const Session& session);
void add_slurm(CommandLine& line, const Session& session);
void add_cdi(CommandLine& line, const Session& session);
void add_top(CommandLine& line, const Session& session);
void add_events(CommandLine& line, const Session& session);
void add_check(CommandLine& line);
void add_reload(CommandLine& line, const Session& session);
void add_repair(CommandLine& line, const Session& session);
void add_guard(CommandLine& line, const Session& session);
void add_web(CommandLine& line, const Session& session);
void add_doctor(CommandLine& line, const Session& session);
void add_adopt(CommandLine& line, const Session& session);
void add_cluster(CommandLine& line);
void add_completion(CommandLine& line);

// Print the reason on standard error, in one line, and return the exit status.
int failed(std::string_view message);
int wrong_usage(std::string_view message);
void warn(std::string_view message);

}  // namespace rdmaquota
