// rdmaquota set: changes limits of the running policy and, with --persist, of the policy file.
#include <algorithm>
#include <cstdio>
#include <memory>

#include <fmt/core.h>

#include "policy/file/edit.hpp"
#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/set_limits.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::vector<std::string> words;  // [TENANT] DEVICE RES=N...
    bool process = false;
    bool persist = false;
    std::string file;
};

struct Request {
    std::string tenant = std::string(default_tenant);
    std::string device;
    std::vector<Setting> settings;
};

bool is_setting(const std::string& word) { return word.find('=') != std::string::npos; }

Result<Request> read_names(const std::vector<std::string>& words) {
    Request request;
    const auto settings = std::find_if(words.begin(), words.end(), is_setting);
    const auto names = settings - words.begin();
    if (settings == words.end()) return Error{"no limit is given; write RESOURCE=N, for example rxe0 qp=10"};
    if (names == 0) return Error{"no device is given; write its name before the limits, or '*' for each, or total"};
    if (names > 2) return Error{fmt::format("'{}' is no limit: write RESOURCE=N, for example qp=10", words[2])};
    if (names == 2) request.tenant = words[0];
    request.device = *(settings - 1);
    if (!valid_device(request.device)) return Error{fmt::format("'{}' is no device name", request.device)};
    return request;
}

Result<Request> read_request(const std::vector<std::string>& words) {
    auto request = read_names(words);
    if (!request) return request;
    for (auto word = std::find_if(words.begin(), words.end(), is_setting); word != words.end(); ++word) {
        const auto setting = parse_setting(*word);
        if (!setting) return Error{setting.error()};
        const auto limitable = check_limitable(request->device, setting->resource);
        if (!limitable) return Error{limitable.error()};
        request->settings.push_back(setting.value());
    }
    return request;
}

Result<void> persist(const Options& options, const Request& request, const Session& session) {
    if (options.file.empty() && session.directory != system_directory)
        return Error{fmt::format("{} does not come from {}; name its policy file with --file", session.directory,
                                 default_policy_file())};
    std::vector<LimitChange> changes;
    for (const auto& setting : request.settings)
        changes.push_back({options.process ? Scope::process : Scope::tenant, request.device,
                           setting.resource, setting.limit});
    return persist_policy(options.file.empty() ? default_policy_file() : options.file, changes);
}

// An unknown name is most often misspelt, but may be that of a device to come.
void warn_of_unknown_device(const std::string& device, const Session& session) {
    if (device == any_device || device == total_device) return;
    auto known = machine_devices();
    if (const auto ledger = Ledger::open(ledger_path(session.directory)))
        for (const auto& [number, name] : ledger.value().devices()) known.push_back(name);
    if (std::find(known.begin(), known.end(), device.substr(0, device.find('/'))) != known.end()) return;
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    std::string names;
    std::erase_if(known, is_port);
    for (const auto& name : known) names += (names.empty() ? "" : ", ") + name;
    warn(fmt::format("warning: no device '{}' is known here{}{}; the limit waits for it", device,
                     names.empty() ? "" : ", only ", names));
}

void print_changes(const LimitRequest& request, const std::string& tenant, const std::vector<LimitDone>& done) {
    const auto who = request.scope == Scope::process ? std::string("each process") : "tenant " + tenant;
    for (const auto& change : done)
        fmt::print("{} {}: {} -> {} ({})\n", request.device, info(change.resource).name,
                   format_amount(change.resource, change.before), format_amount(change.resource, change.after), who);
}

int set(const Options& options, const Session& session) {
    const auto request = read_request(options.words);
    if (!request) return wrong_usage(request.error());
    if (const auto known = check_tenant(request.value().tenant); !known) return failed(known.error());
    const auto scope = options.process ? Scope::process : Scope::tenant;
    auto writer = open_for_change(session.directory);
    if (!writer) return failed(writer.error());
    if (const auto room = check_room(writer->policy(), scope, request->device); !room) return failed(room.error());
    if (options.persist)
        if (const auto saved = persist(options, request.value(), session); !saved) return failed(saved.error());
    warn_of_unknown_device(request.value().device, session);
    const LimitRequest change{scope, request->device, request->settings};
    const auto done = set_limits(*writer, change);
    if (!done) return failed(done.error());
    print_changes(change, request->tenant, *done);
    if (options.persist) fmt::print("saved in {}\n", options.file.empty() ? default_policy_file() : options.file);
    return status_done;
}

}  // namespace

void add_set(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("set", "Change limits; running programs feel it at once");
    command.words("[TENANT] DEVICE RESOURCE=N", options->words,
                  "What to limit: a device, a port of it (mlx5_0/1), '*' for each device or total for their sum; N as "
                  "in 10, 10k, 4GiB, max");
    command.flag("--process", options->process, "Limit each process instead of the tenant as a whole");
    command.flag("--persist", options->persist, "Change the policy file too, so that the limit outlives a reload");
    command.option("--file", "FILE", options->file, "Policy file for --persist instead of " + default_policy_file());
    command.action([options, &session] { return set(*options, session); });
}

}  // namespace rdmaquota
