#include "tools/rdmaquotad/serve/answers.hpp"

#include <fmt/core.h>

#include "tools/common/limit_changes.hpp"
#include "tools/common/snapshot_json.hpp"

namespace rdmaquota {
namespace {

// A snapshot looks at every slot. Sharing it makes many clients cost no more than one.
constexpr std::chrono::milliseconds snapshot_age{100};

Text line(Json json) {
    json["version"] = control_version;
    return std::make_shared<const std::string>(dump(json) + "\n");
}

Text refusal(const std::string& why) { return line(Json{{"version", control_version}, {"error", why}}); }

Json start() { return Json{{"version", control_version}}; }

}  // namespace

// Every user may read: all are in the one tenant.
Answer Answers::answer(const Peer& peer, std::string_view text) {
    const auto request = parse_request(text);
    if (!request) return {refusal(request.error())};
    const auto kind = request->kind;
    if (needs_privilege(kind) && !peer.privileged)
        return {refusal(fmt::format("only root may ask for \"{}\"", name(kind)))};
    const bool works_without =
        kind == RequestKind::status || kind == RequestKind::events || kind == RequestKind::reload;
    if (!works_without && !sources_.node.usable()) return {refusal(sources_.node.missing())};
    if (kind == RequestKind::stats) return {cached_stats()};
    if (kind == RequestKind::history) return {sources_.history(*request)};
    const auto json = give(peer, *request);
    if (!json) return {refusal(json.error())};
    return {line(*json), kind == RequestKind::subscribe};
}

Result<Json> Answers::give(const Peer& peer, const Request& request) {
    switch (request.kind) {
        case RequestKind::status:
            return sources_.status();
        case RequestKind::process:
            return process(request.pid);
        case RequestKind::events:
            return events(request.since);
        case RequestKind::set:
            return set(peer, request);
        case RequestKind::reload: {
            const auto done = sources_.reload();
            if (!done) return Error{done.error()};
            auto json = start();
            json["done"] = *done;
            return json;
        }
        default: {
            auto json = start();
            json["subscribed"] = true;
            return json;
        }
    }
}

const TenantView& Answers::snapshot() {
    const auto now = std::chrono::steady_clock::now();
    if (snapshot_ && now - snapshot_time_ <= snapshot_age) return *snapshot_;
    stats_.reset();
    snapshot_time_ = now;
    sources_.node.copy_ledger(LedgerCopy::Parts::usage_and_activity);
    return snapshot_.emplace(take_snapshot(sources_.node.ledger_copy(), sources_.node.policy()));
}

Json Answers::stats() {
    auto& node = sources_.node;
    auto json = start();
    auto tenant = tenant_json(snapshot());
    tenant["changed_limits"] = changes_json(node.policy(), limit_changes(node.directory(), node.policy()));
    tenant["bypasses"] = sources_.bypasses();
    json["tenants"] = Json::array({std::move(tenant)});
    return json;
}

Text Answers::cached_stats() {
    snapshot();
    if (!stats_) stats_ = line(stats());
    return stats_;
}

Result<Json> Answers::process(std::uint32_t pid) {
    const auto& tenant = snapshot();
    auto json = start();
    json["processes"] = Json::array();
    for (const auto& process : tenant.processes)
        if (process.pid == pid) json["processes"].push_back(process_json(process));
    if (json["processes"].empty()) return Error{fmt::format("no process {} is in the ledger", pid)};
    return json;
}

Json Answers::events(std::uint64_t since) const {
    auto json = start();
    json["events"] = Json::array();
    for (const auto& event : sources_.events.all())
        if (event.number >= since) json["events"].push_back(to_json(event));
    json["next"] = sources_.events.next();
    return json;
}

Result<Json> Answers::set(const Peer& peer, const Request& request) {
    if (!sources_.node.writable()) return Error{"this rdmaquotad may not change limits; run it as root"};
    auto writer = sources_.node.policy_writer();
    if (!writer) return Error{writer.error()};
    const auto done = set_limits(*writer, request.limits);
    if (!done) return Error{done.error()};
    snapshot_.reset();
    auto json = start();
    for (const auto& change : *done)
        json["limits"][std::string(info(change.resource).name)] = {{"before", limit_json(change.before)},
                                                                   {"after", limit_json(change.after)}};
    log(Priority::notice, fmt::format("limits of {} set by uid {} pid {}", request.limits.device, peer.uid, peer.pid));
    return json;
}

}  // namespace rdmaquota
