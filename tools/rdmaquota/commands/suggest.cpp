// rdmaquota suggest: limits that fit what was used and denied so far, as a difference to those in force.
#include <algorithm>
#include <ctime>
#include <memory>

#include <fmt/core.h>

#include "policy/limit.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_segment.hpp"
#include "tools/common/views/json.hpp"
#include "tools/common/tenants/read_tenants.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/rdmaquota/command.hpp"
#include "tools/rdmaquota/propose/limits.hpp"
#include "tools/rdmaquota/view/event_filter.hpp"
#include "tools/rdmaquota/view/event_source.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string tenant, since = "7d";
    bool json = false, commands = false;
};

EventsByTime events_since(const std::string& directory, const std::string& since) {
    EventSource source(directory);
    if (!source.open()) return {};
    auto events = source.take();
    source.add_past(since, events);
    return events;
}

std::string table_of(const Proposal& proposal) {
    const auto quoted = [](const std::string& word) { return fmt::format("\"{}\"", printable(word)); };
    return fmt::format("[tenant.{}{}.{}]", quoted(proposal.tenant), proposal.scope == Scope::process ? ".process" : "", quoted(proposal.device));
}

std::string limit_text(const Proposal& proposal, std::uint64_t limit) {
    const auto text = format_limit(proposal.resource, limit);
    return info(proposal.resource).unit == Unit::bytes ? fmt::format("\"{}\"", text) : text;
}

void print_difference(const std::vector<Proposal>& proposals) {
    std::string table;
    for (const auto& proposal : proposals) {
        const auto its = table_of(proposal);
        if (its != table) fmt::print("{}{}\n", table.empty() ? "" : "\n", its);
        table = its;
        const auto name = info(proposal.resource).name;
        if (proposal.now != unlimited) fmt::print("-{} = {}\n", name, limit_text(proposal, proposal.now));
        const auto line = fmt::format("+{} = {}", name, limit_text(proposal, proposal.limit));
        fmt::print("{:<30} # {}\n", line, proposal.why);
    }
}

void print_commands(const std::vector<Proposal>& proposals) {
    for (const auto& proposal : proposals)
        fmt::print("rdmaquota set {} {} {}={}{} --persist    # {}\n", printable(proposal.tenant), printable(proposal.device),
                   info(proposal.resource).name, format_limit(proposal.resource, proposal.limit),
                   proposal.scope == Scope::process ? " --process" : "", proposal.why);
}

Json to_json(const std::vector<Proposal>& proposals) {
    Json list = Json::array();
    for (const auto& proposal : proposals)
        list.push_back(Json{{"tenant", proposal.tenant}, {"device", proposal.device}, {"scope", name(proposal.scope)},
                            {"resource", info(proposal.resource).name}, {"now", limit_json(proposal.now)}, {"limit", proposal.limit},
                            {"why", proposal.why}});
    return Json{{"version", 1}, {"suggestions", std::move(list)}};
}

// A denial may be older than the limit that holds now.
void follow_present_limits(std::vector<Proposal>& proposals, const std::vector<TenantReading>& tenants) {
    std::erase_if(proposals, [&](Proposal& proposal) {
        const auto tenant = std::find_if(tenants.begin(), tenants.end(), [&](const auto& one) { return one.view.name == proposal.tenant; });
        if (tenant == tenants.end()) return false;
        const auto limits = LimitsSegment::open(limits_path(tenant->place.here), LimitsSegment::Parts::all);
        if (!limits) return false;
        const bool raises = proposal.now < proposal.limit;
        proposal.now = limits->configured(proposal.scope, proposal.device, proposal.resource);
        return raises && proposal.limit <= proposal.now;
    });
}

int suggest(const Options& options, const Session& session) {
    const auto since = parse_since(options.since, std::time(nullptr));
    if (!since) return wrong_usage(since.error());
    const auto tenants = read_tenants(session.directory, options.tenant);
    if (!tenants) return failed(tenants.error());
    std::vector<TenantView> views;
    for (const auto& tenant : *tenants) views.push_back(tenant.view);
    auto proposals = propose(views, events_since(session.directory, *since), *since);
    follow_present_limits(proposals, *tenants);
    if (!options.tenant.empty())
        std::erase_if(proposals, [&](const Proposal& proposal) { return proposal.tenant != options.tenant; });
    if (options.json) return fmt::print("{}\n", dump(to_json(proposals))), status_done;
    if (proposals.empty()) {
        fmt::print("nothing to suggest: nothing was denied since {}, and no limit is far from what is used\n", printable(options.since));
        return status_done;
    }
    if (options.commands) return print_commands(proposals), status_done;
    print_difference(proposals);
    if (standard_output().is_terminal) fmt::print("\nA denial can be right: judge each. 'rdmaquota suggest --commands' prints commands.\n");
    return status_done;
}

}  // namespace

void add_suggest(CommandLine& line, const Session& session) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("suggest", "Suggest limits by what was used and denied so far");
    command.optional_word("TENANT", options->tenant, "Only for this tenant");
    command.option("--since", "TIME", options->since, "By denials since then; 7d by default");
    command.flag("--commands", options->commands, "As commands that make the changes");
    command.flag("--json", options->json, "As JSON");
    command.action([options, &session] { return suggest(*options, session); });
}

}  // namespace rdmaquota
