// One request of the control socket: a line of JSON, as rdmaquotad(8) describes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/limit_key.hpp"
#include "policy/result.hpp"
#include "tools/common/cluster/ceilings.hpp"

namespace rdmaquota {

inline constexpr int control_version = 1;

enum class RequestKind : std::uint8_t {
    status,
    stats,
    process,
    events,
    subscribe,
    history,
    set,
    unset,
    instance,
    grant,
    guard,
    guard_off,
    web,
    cluster,
};

struct Request {
    RequestKind kind{};
    std::uint32_t pid = 0;   // of `process`
    std::uint64_t since = 0;  // of `events`: the first number that is wanted
    bool renewed = false;     // of `web`: the token is to be a new one
    // Of `set` and, without limits, of `unset`; all of one tenant, scope and device.
    std::vector<LimitChange> changes;
    std::optional<Delivery> delivery;  // of `cluster`
    // Of `history`; empty: every one. The first is also of `grant`.
    std::string tenant, device, resource;
};

// The error says what is wrong with the line and is fit to be sent back.
Result<Request> parse_request(std::string_view line);

// Whether only root, or the daemon's own user, may ask it.
constexpr bool needs_privilege(RequestKind kind) noexcept {
    return kind == RequestKind::set || kind == RequestKind::unset || kind == RequestKind::guard_off ||
           kind == RequestKind::cluster;
}

std::string_view name(RequestKind kind) noexcept;

}  // namespace rdmaquota
