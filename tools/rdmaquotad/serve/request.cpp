#include "tools/rdmaquotad/serve/request.hpp"

#include <array>
#include <optional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "policy/policy.hpp"
#include "policy/printable.hpp"
#include "tools/common/cluster/ceilings_json.hpp"
#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

constexpr std::array<std::string_view, 14> names{"status", "stats", "process",  "events", "subscribe", "history",
                                                 "set",    "unset", "instance", "grant",  "guard", "guard_off", "web", "cluster"};

Error wrong(std::string_view what) { return {std::string(what)}; }

std::optional<RequestKind> find_kind(std::string_view text) {
    for (std::size_t i = 0; i < names.size(); ++i)
        if (names[i] == text) return static_cast<RequestKind>(i);
    return std::nullopt;
}

// nullptr when it is not there or no string.
const std::string* text_of(const Json& json, const char* key) {
    const auto found = json.find(key);
    return found == json.end() ? nullptr : found->get_ptr<const std::string*>();
}

Result<void> read_process(const Json& json, Request& request) {
    const auto pid = json.find("pid");
    if (pid == json.end() || !pid->is_number_unsigned() || pid->get<std::uint64_t>() > UINT32_MAX)
        return wrong("\"process\" needs a \"pid\", a number");
    request.pid = pid->get<std::uint32_t>();
    return {};
}

Result<void> read_events(const Json& json, Request& request) {
    const auto since = json.find("since");
    if (since == json.end()) return {};
    if (!since->is_number_unsigned()) return wrong("\"since\" must be the number of an event");
    request.since = since->get<std::uint64_t>();
    return {};
}

Result<void> read_history(const Json& json, Request& request) {
    if (const auto* tenant = text_of(json, "tenant")) request.tenant = *tenant;
    if (const auto* device = text_of(json, "device")) request.device = *device;
    if (const auto* resource = text_of(json, "resource")) request.resource = *resource;
    if (request.resource.empty() || find_resource(request.resource)) return {};
    return wrong(fmt::format("there is no resource '{}'", printable(request.resource)));
}

// A limit is a number, null for none, or a string as on the command line.
Result<void> add_setting(const std::string& resource, const Json& value, std::string_view device, LimitRow& row) {
    if (resource != all_resources && !find_limit(resource))
        return wrong(fmt::format("there is no resource '{}'", printable(resource)));
    if (!value.is_number_unsigned() && !value.is_string() && !value.is_null())
        return wrong(
            fmt::format("the limit of {} must be a whole number, a string such as \"4GiB\", or null", resource));
    const auto limit = value.is_null() ? "max" : value.is_string() ? value.get<std::string>() : value.dump();
    return add_settings(row, device, fmt::format("{}={}", resource, limit));
}

// What the limits of `set` and `unset` have in common; the resource is still to be filled in.
Result<LimitKey> read_key(const Json& json, RequestKind kind) {
    LimitKey key;
    const auto* device = text_of(json, "device");
    if (device == nullptr || !valid_device(*device))
        return wrong(fmt::format("\"{}\" needs a \"device\": a name, \"*\" or \"total\"", name(kind)));
    key.device = *device;
    if (const auto* tenant = text_of(json, "tenant")) key.tenant = *tenant;
    else if (json.contains("tenant")) return wrong("\"tenant\" must be the name of one");
    const auto scope = json.value("scope", Json("tenant"));
    if (scope != "tenant" && scope != "process") return wrong("\"scope\" must be \"tenant\" or \"process\"");
    key.scope = scope == "process" ? Scope::process : Scope::tenant;
    return key;
}

Result<void> read_set(const Json& json, Request& request) {
    const auto key = read_key(json, request.kind);
    if (!key) return Error{key.error()};
    const auto limits = json.find("limits");
    if (limits == json.end() || !limits->is_object() || limits->empty())
        return wrong("\"set\" needs \"limits\", an object such as {\"qp\":10}");
    auto row = unset_row();
    for (const auto& [resource, value] : limits->items())
        if (auto added = add_setting(resource, value, key->device, row); !added) return added;
    for (const auto& resource : limit_table)
        if (const auto limit = row[index(resource.id)]; limit != unset)
            request.changes.push_back({{key->tenant, key->scope, key->device, resource.id}, limit});
    return {};
}

Result<void> read_unset(const Json& json, Request& request) {
    const auto key = read_key(json, request.kind);
    if (!key) return Error{key.error()};
    const auto resources = json.find("resources");
    if (resources == json.end() || !resources->is_array() || resources->empty())
        return wrong("\"unset\" needs \"resources\", a list such as [\"qp\"]");
    for (const auto& resource : *resources) {
        const auto* word = resource.get_ptr<const std::string*>();
        const auto known = word == nullptr ? std::nullopt : find_limit(*word);
        if (!known) return wrong(fmt::format("there is no resource {}", printable(dump(resource))));
        if (auto limitable = check_limitable(key->device, *known); !limitable) return limitable;
        request.changes.push_back({{key->tenant, key->scope, key->device, *known}, unset});
    }
    return {};
}

Result<void> read_cluster(const Json& json, Request& request) {
    if (!json.contains("delivery")) return {};
    auto delivery = parse_delivery(json["delivery"]);
    if (!delivery) return Error{delivery.error()};
    request.delivery = std::move(*delivery);
    return {};
}

Result<void> read_rest(const Json& json, Request& request) {
    switch (request.kind) {
        case RequestKind::process:
            return read_process(json, request);
        case RequestKind::events:
            return read_events(json, request);
        case RequestKind::grant:
            if (const auto* tenant = text_of(json, "tenant")) request.tenant = *tenant;
            return {};
        case RequestKind::history:
            return read_history(json, request);
        case RequestKind::set:
            return read_set(json, request);
        case RequestKind::unset:
            return read_unset(json, request);
        case RequestKind::cluster:
            return read_cluster(json, request);
        case RequestKind::web:
            request.renewed = json.value("renewed", Json()) == true;
            return {};
        default:
            return {};
    }
}

}  // namespace

std::string_view name(RequestKind kind) noexcept { return names[static_cast<std::size_t>(kind)]; }

Result<Request> parse_request(std::string_view line) {
    const auto json = Json::parse(line, nullptr, false);
    if (!json.is_object()) return wrong("a request is one line with a JSON object");
    if (json.value("version", Json()) != control_version)
        return wrong(fmt::format("this rdmaquotad speaks version {0}; send \"version\":{0}", control_version));
    const auto* word = text_of(json, "request");
    const auto kind = word == nullptr ? std::nullopt : find_kind(*word);
    if (!kind) return wrong(fmt::format("\"request\" must be one of {}", fmt::join(names, ", ")));
    Request request;
    request.kind = *kind;
    if (const auto read = read_rest(json, request); !read) return Error{read.error()};
    return request;
}

}  // namespace rdmaquota
