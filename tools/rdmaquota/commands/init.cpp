// rdmaquota init: writes a first policy for a kind of node, which denies nothing yet.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <iostream>
#include <memory>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "policy/tenant.hpp"
#include "policy/write_all.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/events/event_text.hpp"
#include "policy/node_memory.hpp"
#include "tools/common/open_file.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/common/device_query.hpp"
#include "tools/rdmaquota/propose/recipe.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string kind, output;
    std::vector<std::string> groups;
};

const Recipe* find_recipe(std::string_view kind) {
    const auto found = std::find_if(recipes().begin(), recipes().end(), [&](const Recipe& recipe) { return recipe.kind == kind; });
    return found == recipes().end() ? nullptr : &*found;
}

std::string kinds() {
    std::string text;
    for (const auto& recipe : recipes()) text += fmt::format("{}{}", text.empty() ? "" : ", ", recipe.kind);
    return text;
}

// What the node looks like; empty: like nothing special.
std::string_view likely_kind() {
    if (::access("/etc/slurm/slurm.conf", F_OK) == 0) return "slurm";
    if (::access("/var/lib/kubelet", F_OK) == 0) return "kubernetes";
    return "login";
}

std::string ask() {
    const auto likely = likely_kind();
    fmt::print(stderr, "What kind of node is this?\n");
    for (const auto& recipe : recipes()) fmt::print(stderr, "  {:<11} {}\n", recipe.kind, recipe.meaning);
    fmt::print(stderr, "[{}] ", likely);
    std::string answer;
    std::getline(std::cin, answer);
    return answer.empty() ? std::string(likely) : answer;
}

NodeFigures figures_of(const std::vector<std::string>& devices) {
    NodeFigures node;
    node.memory = node_memory();
    for (const auto& device : devices) {
        const auto maxima = device_maxima(device);
        for (std::size_t i = 0; i < maxima.size(); ++i)
            if (maxima[i] != 0) node.device[i] = node.device[i] == 0 ? maxima[i] : std::min(node.device[i], maxima[i]);
    }
    return node;
}

std::string devices_line(const std::vector<std::string>& devices, const NodeFigures& node) {
    if (devices.empty()) return "# No RDMA device was found: the numbers are those of a common adapter.\n";
    std::string names;
    for (const auto& device : devices) names += fmt::format("{}{}", names.empty() ? "" : ", ", printable(device));
    const auto qps = node.device[index(Resource::qp)];
    return fmt::format("# Devices: {}{}; memory: {}.\n", names,
                       qps == 0 ? std::string() : fmt::format(" (at least {} qp each)", qps), format_amount(Resource::mr_bytes, node.memory));
}

// The most that each tenant had so far, where a policy is in force.
std::string usage_lines(const std::string& directory) {
    const auto tenants = read_tenants(directory);
    if (!tenants) return {};
    constexpr std::size_t most_lines = 10;
    std::string text;
    std::size_t lines = 0;
    for (const auto& tenant : *tenants) {
        if (tenant.view.is_sum) continue;
        for (const auto& device : tenant.view.devices)
            for (const auto& view : device.resources)
                if ((view.resource == Resource::qp || view.resource == Resource::mr_bytes) && view.peak.value_or(0) != 0 &&
                    ++lines <= most_lines)
                    text += fmt::format("#   {}: {} {} on {}\n", printable(tenant.view.name), format_amount(view.resource, *view.peak),
                                        info(view.resource).name, printable(device.name));
    }
    if (lines > most_lines) text += fmt::format("#   and {} more; 'rdmaquota show --summary' lists all\n", lines - most_lines);
    return text.empty() ? text : "# Had at most so far:\n" + text;
}

std::string policy_of(const Recipe& recipe, const Options& options, const Session& session) {
    const auto devices = machine_devices();
    const auto node = figures_of(devices);
    const auto now = static_cast<std::uint64_t>(std::time(nullptr)) * 1'000'000'000;
    return fmt::format("# Written by 'rdmaquota init {}' on {}. Next:\n"
                       "#   rdmaquota check FILE, and rdmaquota reload FILE: puts it in force, and denies nothing\n"
                       "#   rdmaquota events --kind would_deny: what it would have denied; rdmaquota suggest: which limits to change\n"
                       "#   then mode = \"enforce\" below, and rdmaquota reload\n{}{}#\n{}",
                       recipe.kind, event_time(now, true).substr(0, 10), devices_line(devices, node), usage_lines(session.directory),
                       with_groups(scaled(recipe.text, node), options.groups));
}

int write_new(const std::string& path, const std::string& text) {
    const OpenFile file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
    if (!file) {
        return failed(errno == EEXIST ? fmt::format("there is already a file {}: name another one, or move it away", printable(path))
                                      : fmt::format("cannot write {}: {}", printable(path), std::strerror(errno)));
    }
    if (!write_all(file.fd(), text) || ::fsync(file.fd()) != 0)
        return failed(fmt::format("cannot write {}: {}", printable(path), std::strerror(errno)));
    fmt::print("{} is written; 'rdmaquota check {}' says what it means\n", printable(path), printable(path));
    return status_done;
}

int init(Options& options, const Session& session) {
    if (options.kind.empty() && ::isatty(STDIN_FILENO) == 1) options.kind = ask();
    const auto* recipe = find_recipe(options.kind);
    if (recipe == nullptr)
        return wrong_usage(options.kind.empty() ? fmt::format("name the kind of node: {}; this one looks like {}", kinds(), likely_kind())
                                                : fmt::format("'{}' is no kind of node; choose of {}", printable(options.kind), kinds()));
    if (!options.groups.empty() && recipe->kind != "ai") return wrong_usage("--group is for the kind ai");
    for (const auto& group : options.groups)
        if (const auto wrong = check_tenant_name(group); !wrong) return wrong_usage(wrong.error());
    const auto text = policy_of(*recipe, options, session);
    if (!options.output.empty()) return write_new(options.output, text);
    fmt::print("{}", text);
    return status_done;
}

}  // namespace

void add_init(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("init", "Write a first policy for a kind of node, which denies nothing yet");
    command.optional_word("KIND", options->kind, "One of " + kinds() + "; asked for where it is missing");
    command.list("--group", "GROUP", options->groups, "With ai: a tenant for each of these groups");
    command.option("-o,--output", "FILE", options->output, "Write a new file instead of standard output");
    command.action([options, &session] { return init(*options, session); });
}

}  // namespace rdmaquota
