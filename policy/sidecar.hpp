// The part of the policy for the sidecar, rdmaquotad. The provider does not read it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "policy/limit.hpp"
#include "policy/resource.hpp"
#include "policy/scope.hpp"

namespace rdmaquota {

// What counts as 100 % of a watched resource.
enum class CapacityOf : std::uint32_t {
    limit,   // the configured tenant limit of the watched resource
    node,    // the node's memory; for mr_bytes only
    device,  // the maximum that the device tells; see device_capacity in tools/rdmaquotad
    amount,  // what the rule says
};

// A rule by which a limit follows the node's state. Below 100, `factor` tightens, from the moment
// usage reaches `above` per cent until it has fallen to `below`; over 100 it relaxes, from `below`
// until `above`.
struct DynamicRule {
    std::string tenant = "*";  // whose limit: a tenant's, or "*", each tenant's
    std::string device = "*";  // a device, or "*": each device by itself
    Resource watch{};          // by the usage of all processes on the device
    CapacityOf of = CapacityOf::limit;
    std::uint64_t capacity = 0;  // for CapacityOf::amount
    std::uint32_t above = 90;    // per cent of the capacity
    std::uint32_t below = 70;
    Resource limit{};  // what is limited
    Scope scope = Scope::tenant;
    std::uint32_t factor = 50;  // per cent of the configured limit
    std::uint64_t floor = 0;    // never less than this; also what holds when no limit is configured

    bool tightens() const noexcept { return factor < 100; }
    bool operator==(const DynamicRule&) const = default;
};

inline constexpr std::size_t most_dynamic_rules = 64;

// What the guard in the kernel does with a creation beyond a limit.
enum class GuardMode : std::uint8_t {
    off,    // there is none
    watch,  // counts it
    deny,   // refuses it
};

// Who sees the web page.
enum class WebAccess : std::uint8_t {
    token,  // who has an address from `rdmaquota web`: its own tenants, root all
    all,    // everyone who reaches the loopback address
};

// Where the sidecar serves metrics, which clients it admits, and which series it adds. Paths are absolute; empty: not configured.
struct MetricsAccess {
    std::string address = "127.0.0.1";  // IPv4 or IPv6, where the sidecar listens
    std::string certificate, key;       // PEM files; with them the metrics are served by TLS only
    std::string token;                  // a file with the bearer token that a client must send
    std::string client_ca;              // a PEM file: a client needs a certificate of one of these authorities
    bool pods = false, jobs = false;    // usage by pod and namespace, by job

    bool has_tls() const noexcept { return !certificate.empty(); }
    bool asks_for_proof() const noexcept { return !token.empty() || !client_ca.empty(); }
    bool operator==(const MetricsAccess&) const = default;
};

// Of text such as "127.0.0.1" or "::1"; none where it is not an address.
enum class AddressKind : std::uint8_t { none, loopback, other };
AddressKind address_kind(const std::string& text) noexcept;

struct Sidecar {
    std::uint32_t metrics_port = 0;  // 0: no metrics over HTTP
    std::uint32_t web_port = 0;      // on the loopback address; 0: no web page
    MetricsAccess metrics = {};
    WebAccess web = WebAccess::token;
    GuardMode guard = GuardMode::off;
    std::string backstop;            // of tenant.default: the cgroup whose rdma.max follows its limits; empty: none

    bool operator==(const Sidecar&) const = default;
};

// Names as in the policy file.
std::string_view name(CapacityOf) noexcept;
std::string_view name(GuardMode) noexcept;
std::string_view name(WebAccess) noexcept;

}  // namespace rdmaquota
