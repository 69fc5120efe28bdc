#include "tools/rdmaquotad/serve/answers.hpp"

#include <fmt/core.h>

#include "tools/common/limits/change_limits.hpp"
#include "tools/common/views/snapshot_json.hpp"

namespace rdmaquota {
namespace {

constexpr std::size_t most_processes = 131'072;  // in one answer

Text line(Json json) {
    json["version"] = control_version;
    return std::make_shared<const std::string>(dump(json) + "\n");
}

Text refusal(const std::string& why) { return line(Json{{"version", control_version}, {"error", why}}); }

Json start() { return Json{{"version", control_version}}; }

bool works_without_tenants(RequestKind kind) {
    return kind == RequestKind::status || kind == RequestKind::events || kind == RequestKind::web;
}

Json changes_json(const std::vector<LimitDone>& done) {
    Json limits = Json::object();
    for (const auto& change : done)
        limits[std::string(info(change.key.resource).name)] = {{"before", limit_json(change.before)},
                                                               {"after", limit_json(change.after)},
                                                               {"in_force", limit_json(change.in_force)},
                                                               {"reason", name(change.reason)}};
    return limits;
}

// What changes are of, for the log.
std::string words(const LimitKey& key) {
    const auto holder = key.tenant.empty() && key.scope == Scope::tenant ? fmt::format("tenant {}", default_tenant)
                                                                         : holder_of(key);
    return fmt::format("limits of {} on {}", holder, key.device);
}

}  // namespace

Answer Answers::answer(const Peer& peer, std::string_view text) {
    const auto request = parse_request(text);
    if (!request) return {refusal(request.error())};
    const auto kind = request->kind;
    if (needs_privilege(kind) && !peer.privileged)
        return {refusal(peer.tenant.empty() ? fmt::format("only root may ask for \"{}\"", name(kind))
                                            : fmt::format("\"{}\" is asked outside of the container", name(kind)))};
    if (!works_without_tenants(kind) && !sources_.node.usable()) return {refusal(sources_.node.missing())};
    if (kind == RequestKind::stats) return {cached_stats(peer)};
    if (kind == RequestKind::history) {
        const auto by_name = [&](const std::string& name) { return sources_.visibility.sees_name(peer, name); };
        return {sources_.history(*request, peer.privileged ? Sees() : by_name)};
    }
    if (kind == RequestKind::grant) return grant(peer, request->tenant);
    const auto json = give(peer, *request);
    if (!json) return {refusal(json.error())};
    return {line(*json), kind == RequestKind::subscribe};
}

Answer Answers::grant(const Peer& peer, const std::string& tenant) {
    if (tenant.empty() && !peer.privileged) return {refusal("only root divides anew for all tenants; name yours")};
    const auto done = line(Json{{"done", "divided"}});
    if (tenant.empty()) {
        const auto divided = sources_.divide();
        return {divided ? done : refusal(divided.error())};
    }
    auto when = sources_.grant(tenant);
    return when ? Answer{done, false, std::move(*when)} : Answer{refusal(when.error())};
}

Result<Json> Answers::give(const Peer& peer, const Request& request) {
    auto json = start();
    switch (request.kind) {
        case RequestKind::status:
            return sources_.status(by_key(peer));
        case RequestKind::process:
            return process(peer, request.pid);
        case RequestKind::events:
            return events(peer, request.since);
        case RequestKind::set:
        case RequestKind::unset:
            return change(peer, request);
        case RequestKind::instance:
            return instance(peer);
        case RequestKind::guard:
            json["guard"] = sources_.guard([&](const std::string& name) { return sources_.visibility.sees_name(peer, name); });
            return json;
        case RequestKind::guard_off: {
            const auto done = sources_.guard_off();
            if (!done) return Error{done.error()};
            json["done"] = *done;
            return json;
        }
        case RequestKind::cluster: {
            auto report = sources_.cluster(request.delivery ? &*request.delivery : nullptr);
            if (!report) return Error{report.error()};
            json["report"] = std::move(*report);
            return json;
        }
        case RequestKind::web: {
            if (!peer.tenant.empty()) return Error{"the page is asked for outside of the container"};
            auto web = sources_.web(peer, request.renewed);
            if (!web) return Error{web.error()};
            json["web"] = std::move(*web);
            return json;
        }
        default:
            json["subscribed"] = true;
            return json;
    }
}

Answers::Sees Answers::by_key(const Peer& peer) {
    return [this, &peer](const std::string& key) { return sources_.visibility.sees_key(peer, key); };
}

std::vector<Tenant*> Answers::seen_by(const Peer& peer) {
    std::vector<Tenant*> seen;
    for (auto& [key, tenant] : sources_.node.tenants())
        if (tenant.limits() != nullptr && !is_template(key) && sources_.visibility.sees(peer, tenant))
            seen.push_back(&tenant);
    return seen;
}

Json Answers::stats(const Peer& peer, const std::vector<Tenant*>& tenants) {
    auto json = start();
    json["tenants"] = Json::array();
    const auto bypasses = sources_.bypasses(by_key(peer));
    const auto views = sources_.views.of(tenants);
    std::size_t processes = 0;
    for (std::size_t i = 0; i < tenants.size(); ++i) {
        auto& tenant = *tenants[i];
        processes += views[i]->processes.size();
        auto of_tenant = tenant_json(processes <= most_processes ? *views[i] : sum_of({views[i]}, *tenant.limits()));
        of_tenant["changed_limits"] = held_json(tenant.held());
        of_tenant["bypasses"] = Json::array();
        for (const auto& bypass : bypasses)
            if (bypass["tenant"] == tenant.name()) of_tenant["bypasses"].push_back(bypass);
        if (!tenant.ledger().missing().empty()) of_tenant["error"] = tenant.ledger().missing();
        json["tenants"].push_back(std::move(of_tenant));
    }
    return json;
}

Text Answers::cached_stats(const Peer& peer) {
    const auto now = std::chrono::steady_clock::now();
    if (now - stats_time_ > TenantViews::age) {
        stats_.clear();
        stats_time_ = now;
    }
    const auto tenants = seen_by(peer);
    std::string keys;
    for (const auto* tenant : tenants) keys += tenant->key() + '\n';
    auto& text = stats_[keys];
    if (!text) text = line(stats(peer, tenants));
    return text;
}

Result<Json> Answers::process(const Peer& peer, std::uint32_t pid) {
    const auto tenants = seen_by(peer);
    const auto views = sources_.views.of(tenants);
    auto json = start();
    json["processes"] = Json::array();
    for (const auto* view : views)
        for (const auto& process : view->processes) {
            if (process.pid != pid || pid == 0) continue;
            auto of_process = process_json(process);
            of_process["tenant"] = view->name;
            json["processes"].push_back(std::move(of_process));
        }
    if (json["processes"].empty()) return Error{fmt::format("no process {} is in the ledger", pid)};
    return json;
}

Json Answers::events(const Peer& peer, std::uint64_t since) {
    auto json = start();
    json["events"] = Json::array();
    for (const auto& event : sources_.events.all()) {
        const auto tenant = event.fields.value("tenant", "");
        if (event.number >= since && sources_.visibility.sees_event(peer, tenant))
            json["events"].push_back(to_json(event));
    }
    json["next"] = sources_.events.next();
    return json;
}

Result<Json> Answers::change(const Peer& peer, const Request& request) {
    if (!sources_.node.writable()) return Error{"this rdmaquotad may not change limits; run it as root"};
    std::vector<LimitKey> keys;
    for (const auto& change : request.changes) keys.push_back(change.key);
    const bool sets = request.kind == RequestKind::set;
    const auto& directory = sources_.node.directory();
    const auto done = sets ? set_limits(directory, request.changes) : unset_limits(directory, keys);
    if (!done) return Error{done.error()};
    stats_.clear();
    if (const auto divided = sources_.divide(); !divided) return Error{divided.error()};
    auto now = *done;
    read_again(directory, now);
    auto json = start();
    json["limits"] = changes_json(now);
    log(Priority::notice,
        fmt::format("{} {} by uid {} pid {}", words(keys.front()), sets ? "set" : "unset", peer.uid, peer.pid));
    return json;
}

Result<Json> Answers::instance(const Peer& peer) {
    if (!peer.tenant.empty()) return Error{fmt::format("this directory is that of tenant {}", peer.tenant)};
    const auto made = sources_.instances.make_for(peer.pid, peer.uid);
    if (!made) return Error{made.error()};
    auto json = start();
    json["tenant"] = made->tenant;
    json["made"] = made->made;
    if (made->made) log(Priority::info, fmt::format("tenant {} made for uid {}", made->tenant, peer.uid));
    return json;
}

}  // namespace rdmaquota
