// rdmaquota cluster: what tenants may use on all nodes. Asks the coordinator on this machine, by its socket.
#include <algorithm>
#include <memory>

#include <fmt/core.h>

#include "policy/file/cluster_file.hpp"
#include "policy/limit.hpp"
#include "policy/printable.hpp"
#include "tools/common/control_client.hpp"
#include "tools/common/text/terminal.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquota/command.hpp"

namespace rdmaquota {
namespace {

struct Options {
    std::string action, name, control = "/run/rdmaquota-coordinator.sock";
    bool nodes = false, json = false;
};

Result<Json> ask(const Options& options, Json request) {
    return ask_at(options.control, std::move(request), std::chrono::seconds(15), "rdmaquota-coordinator");
}

Json amount_json(const ClusterFile::Pool& pool, std::uint64_t amount) {
    return {{"tenant", pool.first}, {"resource", info(pool.second).name}, {"amount", amount}};
}

Json request_of(const ClusterFile& file) {
    Json pools = Json::array(), nodes = Json::object();
    for (const auto& [pool, limit] : file.limits) pools.push_back(amount_json(pool, limit));
    for (const auto& [name, node] : file.nodes) {
        Json floors = Json::array();
        for (const auto& [pool, amount] : node.floors) floors.push_back(amount_json(pool, amount));
        nodes[name] = {{"weight", node.weight}, {"floors", std::move(floors)}};
    }
    return {{"request", "apply"}, {"pools", std::move(pools)}, {"nodes", std::move(nodes)}};
}

std::string text_of(const Json& pool, const char* key) {
    const auto resource = find_resource(pool.value("resource", "")).value_or(Resource::qp);
    const auto found = pool.find(key);
    return found == pool.end() || !found->is_number_unsigned() ? "-" : format_amount(resource, found->get<std::uint64_t>());
}

// What changes, against what is in force: "physics qp 100 -> 200".
void print_difference(const ClusterFile& file, const Json& present) {
    std::map<ClusterFile::Pool, std::uint64_t> before;
    std::map<std::string, bool> nodes;
    for (const auto& pool : present["pools"])
        if (const auto resource = find_resource(pool.value("resource", "")))
            before[{pool.value("tenant", ""), *resource}] = pool.value("limit", std::uint64_t{0});
    for (const auto& [pool, limit] : file.limits) {
        const auto found = before.find(pool);
        if (found != before.end() && found->second == limit) continue;
        fmt::print("{} {}: {} -> {}\n", printable(pool.first), info(pool.second).name,
                   found == before.end() ? "no limit" : format_amount(pool.second, found->second), format_amount(pool.second, limit));
    }
    for (const auto& [pool, limit] : before)
        if (!file.limits.contains(pool)) fmt::print("{} {}: {} -> no limit\n", printable(pool.first), info(pool.second).name, format_amount(pool.second, limit));
}

int apply(const Options& options) {
    if (options.name.empty()) return wrong_usage("cluster apply needs a FILE");
    const auto file = read_cluster_file(options.name);
    if (!file) return failed(file.error());
    const auto present = ask(options, {{"request", "show"}});
    if (!present) return failed(present.error());
    print_difference(*file, *present);
    const auto done = ask(options, request_of(*file));
    return done ? status_done : failed(done.error());
}

void print_nodes(const Json& pool) {
    for (const auto& node : pool["nodes"])
        fmt::print("    {:<24} {:>12} {:>12} {:>12} {:>12}{}\n", printable(node.value("node", "")), text_of(Json{{"resource", pool["resource"]}, {"x", node["use"]}}, "x"),
                   text_of(Json{{"resource", pool["resource"]}, {"x", node["ceiling"]}}, "x"), text_of(Json{{"resource", pool["resource"]}, {"x", node["held"]}}, "x"),
                   text_of(Json{{"resource", pool["resource"]}, {"x", node["floor"]}}, "x"), node.value("answers", false) ? "" : "  does not answer");
}

int show(const Options& options) {
    auto answer = ask(options, {{"request", "show"}, {"tenant", options.name}});
    if (!answer) return failed(answer.error());
    if (options.json) return fmt::print("{}\n", answer->dump(2)), status_done;
    fmt::print("{:<28} {:>12} {:>12} {:>12} {:>12}\n", "TENANT, RESOURCE", "IN USE", "HELD", "STRANDED", "LIMIT");
    for (const auto& pool : (*answer)["pools"]) {
        fmt::print("{:<28} {:>12} {:>12} {:>12} {:>12}{}\n", printable(fmt::format("{} {}", pool.value("tenant", ""), pool.value("resource", ""))),
                   text_of(pool, "use"), text_of(pool, "held"), text_of(pool, "stranded"), text_of(pool, "limit"),
                   pool.value("unknown_nodes", 0) == 0 ? "" : fmt::format("  {} nodes have not reported: nothing rises", pool.value("unknown_nodes", 0)));
        if (!options.nodes) continue;
        fmt::print("    {:<24} {:>12} {:>12} {:>12} {:>12}\n", "NODE", "IN USE", "CEILING", "HELD", "FLOOR");
        print_nodes(pool);
    }
    return status_done;
}

int status(const Options& options) {
    auto answer = ask(options, {{"request", "status"}});
    if (!answer) return failed(answer.error());
    if (options.json) return fmt::print("{}\n", answer->dump(2)), status_done;
    const auto leader = answer->value("leader", "");
    fmt::print("leader: {}{}\n", leader.empty() ? "none: does etcd answer?" : printable(leader), answer->value("leads", false) ? " (this one)" : "");
    std::size_t answering = 0;
    for (const auto& node : (*answer)["nodes"]) answering += node.value("answers", false);
    if (answer->value("leads", false)) fmt::print("nodes: {} of {} answer\n", answering, (*answer)["nodes"].size());
    for (const auto& node : (*answer)["nodes"]) {
        if (!node["refused"].is_null()) fmt::print("{}\n", printable(node.value("refused", "")));
        if (!node.value("answers", false))
            fmt::print("{}: does not answer{}; number {}\n", printable(node.value("node", "")),
                       node["away_s"].is_number() ? fmt::format(" for {} s", node["away_s"].get<std::int64_t>()) : "", node.value("number", std::uint64_t{0}));
    }
    return status_done;
}

// Of what is shown now: the coordinator refuses when the node was assigned something else since.
int forget(const Options& options) {
    if (options.name.empty()) return wrong_usage("cluster forget needs a NODE");
    auto answer = ask(options, {{"request", "status"}});
    if (!answer) return failed(answer.error());
    std::uint64_t number = 0;
    for (const auto& node : (*answer)["nodes"])
        if (node.value("node", "") == options.name) number = node.value("number", std::uint64_t{0});
    const auto done = ask(options, {{"request", "forget"}, {"node", options.name}, {"number", number}});
    return done ? status_done : failed(done.error());
}

int restored(const Options& options) {
    const auto done = ask(options, {{"request", "restored"}});
    return done ? status_done : failed(done.error());
}

int cluster(const Options& options) {
    if (options.action == "apply") return apply(options);
    if (options.action == "show") return show(options);
    if (options.action == "status") return status(options);
    if (options.action == "forget") return forget(options);
    if (options.action == "restored") return restored(options);
    return wrong_usage(fmt::format("'{}' is none of apply, show, status, forget, restored", printable(options.action)));
}

}  // namespace

void add_cluster(CommandLine& line) {
    const auto options = std::make_shared<Options>();
    auto command = line.command("cluster", "What tenants may use on all nodes: apply FILE, show [TENANT], status, forget NODE, restored");
    command.word("ACTION", options->action, "apply, show, status, forget or restored");
    command.optional_word("NAME", options->name, "The FILE, TENANT or NODE of the action");
    command.flag("--nodes", options->nodes, "Show each node, too");
    command.flag("--json", options->json, "Write JSON");
    command.option("--control", "PATH", options->control, "Socket of the coordinator on this machine");
    command.action([options] { return cluster(*options); });
}

}  // namespace rdmaquota
