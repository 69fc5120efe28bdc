// What the commands have in common. Each command has a file of its own, command_NAME.cpp, that
// registers it with add_NAME and does its work.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "policy/policy.hpp"
#include "policy/result.hpp"
#include "tools/common/reload.hpp"

namespace rdmaquota {

// Exit statuses; `run` gives its program's own status instead.
inline constexpr int status_done = 0;
inline constexpr int status_failed = 1;
inline constexpr int status_usage = 2;

struct Session {
    std::string directory;             // where policy segment and ledgers are
    std::vector<std::string> program;  // of `run`: what came after --
    int status = status_done;
};

void add_run(CLI::App& app, Session& session);
void add_show(CLI::App& app, Session& session);
void add_set(CLI::App& app, Session& session);
void add_top(CLI::App& app, Session& session);
void add_events(CLI::App& app, Session& session);
void add_check(CLI::App& app, Session& session);
void add_reload(CLI::App& app, Session& session);
void add_repair(CLI::App& app, Session& session);
void add_doctor(CLI::App& app, Session& session);
void add_completion(CLI::App& app, Session& session);

// Tells why on standard error, in one line, and returns the status.
int failed(std::string_view message);
int wrong_usage(std::string_view message);
void warn(std::string_view message);

// An error for every tenant but the default one, which is the only one of this version.
Result<void> check_tenant(std::string_view tenant);

}  // namespace rdmaquota
