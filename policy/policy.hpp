// The node's policy: who may use how much, as read from the policy file. Applications see its compiled form,
// shm/policy/limits_segment.hpp (limits) and shm/policy/node_policy.hpp (who is in which tenant).
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "policy/limit.hpp"
#include "policy/resource.hpp"
#include "policy/result.hpp"
#include "policy/sidecar.hpp"
#include "policy/tenant.hpp"

namespace rdmaquota {

enum class Mode : std::uint32_t {
    enforce,  // deny what exceeds a limit
    audit,    // count, log and record what would be denied; deny nothing
    off,      // neither count nor deny
};

// What a program gets when the ledger or the policy cannot be used.
enum class Unavailable : std::uint32_t { allow, deny };

enum class LogLevel : std::uint32_t { none, error, warning, info, debug };
enum class LogTarget : std::uint32_t { standard_error, syslog, file };

// The two pseudo devices of a limit row.
inline constexpr std::string_view any_device = "*";        // each device
inline constexpr std::string_view total_device = "total";  // the sum over devices

// The kernel's IB_DEVICE_NAME_MAX (include/uapi/rdma/rdma_netlink.h), with the final NUL.
inline constexpr std::size_t device_name_bytes = 64;

// True for "*", "total", what the kernel takes as a device name, and a port of one: "mlx5_0/1".
bool valid_device(std::string_view name) noexcept;

// Whether a valid device name is a port's. "*" and "total" do not include ports.
constexpr bool is_port(std::string_view device) noexcept { return device.find('/') != device.npos; }
// "mlx5_0" and "/1" of "mlx5_0/1"; a device is without a port part.
constexpr std::string_view without_port(std::string_view device) noexcept { return device.substr(0, device.find('/')); }
constexpr std::string_view port_part(std::string_view device) noexcept { return device.substr(without_port(device).size()); }
// Whether the limits of "*" do not hold for it.
constexpr bool stands_alone(std::string_view device) noexcept { return is_port(device) || device == total_device; }

// Two devices in two network namespaces can have one name. The second one is shown as "mlx5_0@uverbs3", and has the limits of "mlx5_0".
inline constexpr char second_of_name = '@';

// A selector names a device by what a rename does not change: "pci:0000:3b:00.0", "guid:0250:f6ff:fe00:0001" (the node GUID),
// "netdev:ens1f0"; with "/1" behind it, a port. It is a valid device name.
constexpr bool is_selector(std::string_view device) noexcept {
    return device.starts_with("pci:") || device.starts_with("guid:") || device.starts_with("netdev:");
}
// The device of this node that a selector selects at present.
struct BoundDevice {
    std::string selector, name;
    std::uint32_t uverbs;  // number of its uverbs device
};

// Whether `resource` can be limited on `device`, to that limit: QPs are bound to ports, nothing else is, and of the sum over devices
// there are no percentages but of memory. The error says where to write the limit instead.
Result<void> check_limitable(std::string_view device, Resource resource, std::uint64_t limit = unlimited);

// "all": the resources that can be limited in percent on `device`.
inline constexpr std::string_view all_resources = "all";
std::vector<Resource> resources_with_capacity(std::string_view device);

// "RES=N", or "all=P%" for each of those, to be limited on `device`.
Result<std::vector<Setting>> parse_settings(std::string_view device, std::string_view text);

// Reads "RES=N" or "DEVICE:RES=N" with a valid device; `device` is empty where the text names none.
struct DeviceSettings {
    std::string device;
    std::vector<Setting> settings;
};
Result<DeviceSettings> parse_device_settings(std::string_view text);

using LimitRow = std::array<std::uint64_t, limit_count>;
constexpr LimitRow unset_row() noexcept {
    LimitRow row{};
    row.fill(unset);
    return row;
}

struct DeviceLimits {
    std::string device;
    LimitRow limits = unset_row();
};

// Limits of one scope; at most one entry per device name, in the order of the file.
using ScopeLimits = std::vector<DeviceLimits>;
using LimitsByScope = std::array<ScopeLimits, scope_count>;  // by index(Scope)

// The row of `device`, appended when there is none yet.
LimitRow& row_for(ScopeLimits& scope, std::string_view device);

// Adds what `parse_settings` reads. "all" gives way to what a resource's own text says, before or after it.
Result<void> add_settings(LimitRow& row, std::string_view device, std::string_view text);
// Adds limits such as "qp=10" and "mlx5_0:cq=5"; a limit without a device is for each device.
Result<void> add_limits(ScopeLimits& scope, const std::vector<std::string>& texts);

// The row of `device`, or nullptr.
const LimitRow* find_row(const ScopeLimits& scope, std::string_view device) noexcept;

// How long a charge waits for a larger share of what the cluster's nodes may use, at least.
inline constexpr std::uint32_t cluster_wait_ms = 250;
inline constexpr std::uint32_t default_grant_wait_ms = 50, most_grant_wait_ms = 10'000;

// What a table says for `device`: in its own row, else in the row "*" unless it is a port or "total"; else `unset`.
std::uint64_t value_for(const ScopeLimits& scope, std::string_view device, Resource resource) noexcept;

// What holds for programs beside their limits.
struct Settings {
    Mode mode = Mode::enforce;
    Unavailable on_unavailable = Unavailable::allow;
    int deny_errno = 0;              // an errno number; 0 is read as EDQUOT
    bool clamp_device_attr = false;  // device attributes tell what the quota leaves, not what the device has
    LogLevel log_level = LogLevel::warning;
    LogTarget log_target = LogTarget::standard_error;
    std::string log_file;  // for LogTarget::file, an absolute path
    std::uint32_t grant_wait_ms = default_grant_wait_ms;  // how long a charge waits for a larger share
};

// A tenant, or a template of tenants, as the policy file has it.
struct TenantPolicy {
    std::string name = std::string(default_tenant);
    std::optional<Mode> mode;       // none: its parent's
    std::optional<int> deny_errno;  // none: its parent's
    std::optional<std::uint32_t> weight;   // none: default_weight
    std::optional<std::uint32_t> grace_s;  // none: its parent's
    std::optional<std::uint32_t> max_delay_ms;  // none: its parent's
    std::vector<Match> matches;            // in the order of the file
    LimitsByScope limits;
    ScopeLimits guarantees, softs;  // of the tenant as a whole; soft limits, not for "total", and the bursts of rates
    std::vector<Resource> cluster;  // of which it has nothing, over all devices, until the cluster assigns it something
    bool transient = false;  // added by `rdmaquota tenant add`; in no file
    bool hides_devices = false;  // its programs do not list a device on which its limit of hca_handle is 0
    // Named like a tenant of a template, whose values it has where its own table says nothing. See resolve_overrides.
    bool is_override = false;
    LimitsByScope own_limits;  // of an override: what its own table says; its guarantees all are
    ScopeLimits own_softs;
};

// Limits for the tenant of each Slurm job. What several of these say of one cell is decided by the last in this order.
struct SlurmPolicy {
    ScopeLimits job;  // each job
    std::map<std::string, ScopeLimits, std::less<>> partitions, accounts, qos;  // by Slurm's names
};

struct Policy : Settings {
    ScopeLimits process;                // each process of every tenant that says nothing else for the device
    ScopeLimits node;                   // all tenants together
    std::vector<TenantPolicy> tenants;  // in the order of the file; there is a `default` even when no file names it
    std::vector<DynamicRule> dynamic;   // in the order of the file
    Sidecar sidecar;
    std::optional<SlurmPolicy> slurm;   // none: jobs get no tenant; no part of the compiled policy, see policy/slurm.hpp
    std::vector<std::string> warnings;  // about what was read, "FILE:LINE:COL: what"; no part of what is in force

    // With the tenant `default`.
    Policy();
    TenantPolicy* find(std::string_view tenant) noexcept;  // nullptr: none of this name
    const TenantPolicy* find(std::string_view tenant) const noexcept;
    TenantPolicy& tenant(std::string_view name);  // appended when there is none yet
};

// Whether a tenant may have its name: as a template, as another tenant, or, for an override, also with a user's number for the
// user's name ("user/#1000").
Result<void> check_name(const TenantPolicy& tenant);

// What the policy says of a tenant: by its own name, or else as a template that it is an instance of; null where it says nothing.
const TenantPolicy* find_or_template(const Policy& policy, std::string_view tenant) noexcept;

// What one tenant's programs are held to, as its file of limits has it.
struct TenantLimits : Settings {
    std::string tenant = std::string(default_tenant);  // the name to be shown
    std::uint32_t weight = default_weight;
    std::uint32_t grace_s = default_grace_s;
    std::uint32_t max_delay_ms = default_max_delay_ms;
    LimitsByScope limits;      // its own
    ScopeLimits guarantees, softs;
    std::vector<Resource> cluster;  // as TenantPolicy's
    ScopeLimits first_grants;  // its shares while it has none yet; 0 where somebody must divide first
    ScopeLimits for_everyone;  // of each process, for cells that its own say nothing of (Policy::process)
    // For an override: the cells of its own table, which keep their values when the template's are changed. See TenantPolicy.
    bool is_override = false;
    LimitsByScope own_limits;
    ScopeLimits own_softs;
    bool hides_devices = false;  // as TenantPolicy's
    std::vector<BoundDevice> bound;  // what the selectors among its devices select
};

// What `policy` says of one of its tenants, with what it inherits: mode, deny_errno, grace and max_delay. The tenant need not be
// in the policy's list. Above an instance of a template lie templates: "slurm/{account}" above "slurm/atlas/7".
TenantLimits limits_of(const Policy& policy, const TenantPolicy& tenant);

// Names as in the policy file. parse_* errors list what is accepted.
std::string_view name(Mode) noexcept;
std::string_view name(Unavailable) noexcept;
std::string_view name(LogLevel) noexcept;
std::string_view name(LogTarget) noexcept;
Result<Mode> parse_mode(std::string_view);
Result<Unavailable> parse_unavailable(std::string_view);
Result<LogLevel> parse_log_level(std::string_view);
Result<LogTarget> parse_log_target(std::string_view);

// "EDQUOT", "EAGAIN" or "ENOMEM" to and from errno numbers.
Result<int> parse_deny_errno(std::string_view);
std::string_view deny_errno_name(int number) noexcept;

}  // namespace rdmaquota
