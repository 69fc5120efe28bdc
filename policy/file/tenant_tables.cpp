#include "policy/file/tenant_tables.hpp"

#include <algorithm>
#include <array>
#include <charconv>

#include "policy/file/limit_place.hpp"
#include "policy/file/limit_tables.hpp"
#include "policy/file/match_list.hpp"
#include "policy/printable.hpp"

namespace rdmaquota {
namespace {

Result<std::uint32_t> parse_grace(std::string_view text) {
    struct Unit {
        char letter;
        std::uint32_t seconds;
    };
    static constexpr std::array<Unit, 4> units{{{'s', 1}, {'m', 60}, {'h', 3600}, {'d', 24 * 3600}}};
    constexpr std::uint32_t longest_s = 3650 * 24 * 3600;
    std::uint32_t number = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (status == std::errc{} && end + 1 == text.data() + text.size())
        for (const auto& unit : units)
            if (unit.letter == *end && number > 0 && number <= longest_s / unit.seconds) return number * unit.seconds;
    return Error{fmt::format(
        "'{}' is no grace; write a time such as \"90s\", \"10m\", \"36h\" or \"7d\", at most 3650d", printable(text))};
}

// What the sidecar does for one tenant; of `default` only.
constexpr bool is_sidecar_key(std::string_view key) noexcept { return key == "bypass" || key == "backstop"; }

// Reads [tenant.NAME] of one file.
class TenantReader {
public:
    TenantReader(TableReader& reader, Policy& policy, TenantPolicy& tenant, TenantLocations& locations)
        : reader_(reader), policy_(policy), tenant_(tenant), locations_(locations) {}

    void read(const toml::table& table) {
        for (const auto& [key, node] : table) entry(key, node);
    }

private:
    bool is_default() const noexcept { return tenant_.name == default_tenant; }

    LimitTables::Parts parts() const {
        LimitTables::Parts parts;
        parts.softs = &tenant_.softs;
        if (!is_template(tenant_.name)) parts.guarantees = &tenant_.guarantees;
        parts.no_guarantee =
            "a template has no guarantees, since it stands for any number of tenants; write it for one of them";
        return parts;
    }

    void entry(const toml::key& key, const toml::node& node) {
        const bool own = std::find(tenant_keys.begin(), tenant_keys.end(), key.str()) != tenant_keys.end();
        if (key == "process") return process(key, node);
        if (own && node.is_table())
            return reader_.fail(key, fmt::format("{0} is a key of a tenant and no device; write {0} = ... below [{1}]",
                                                 key.str(), tenant_header(tenant_.name)));
        if (own) return value(key, node);
        if (!node.is_table() && is_sidecar_key(key.str())) return sidecar_key(key, node);
        if (node.is_table() || find_limit(key.str()))
            return LimitTables(reader_, tenant_header(tenant_.name), is_default() ? "" : tenant_.name, parts())
                .device(key, node, tenant_.limits[index(Scope::tenant)]);
        reader_.unknown(fmt::format("key in [{}]", tenant_header(tenant_.name)), key, tenant_keys);
    }

    void value(const toml::key& key, const toml::node& node) {
        if (key == "match") return match(key, node);
        if (key == "mode") return reader_.word(key, node, parse_mode, tenant_.mode.emplace());
        if (key == "deny_errno") return reader_.word(key, node, parse_deny_errno, tenant_.deny_errno.emplace());
        if (key == "devices") return devices(node);
        if (key == "cluster") return cluster(node);
        if (key == "grace") return reader_.word(key, node, parse_grace, tenant_.grace_s.emplace());
        if (key == "max_delay") return reader_.milliseconds(key, node, most_max_delay_ms, tenant_.max_delay_ms.emplace());
        reader_.whole(key, node, 1, most_weight, tenant_.weight.emplace());
    }

    void match(const toml::key& key, const toml::node& node) {
        if (is_default())
            return reader_.fail(key,
                                "default has no match: every process is in it that no match puts elsewhere; "
                                "remove it");
        auto list = read_matches(reader_, node, tenant_.name, policy_.warnings);
        tenant_.matches = std::move(list.entries);
        locations_.matches = std::move(list.locations);
    }

    void devices(const toml::node& node) {
        const auto* list = node.as_array();
        if (list == nullptr) return reader_.fail(node, "devices is a list, such as [\"mlx5_0\", \"pci:0000:3b:00.0\"]");
        auto& devices = locations_.devices.emplace();
        for (const auto& entry : *list) {
            const auto name = entry.value_or(std::string());
            if (!valid_device(name) || name == any_device || stands_alone(name))
                return reader_.fail(entry, "an entry of devices is the name of a device, such as \"mlx5_0\", or a selector of one");
            devices.push_back(name);
        }
    }

    void cluster(const toml::node& node) {
        const auto* list = node.as_array();
        if (list == nullptr) return reader_.fail(node, "cluster is a list of resources, such as [\"qp\", \"mr_bytes\"]");
        for (const auto& entry : *list) {
            const auto resource = find_resource(entry.value_or(std::string()));
            if (!resource) return reader_.fail(entry, "an entry of cluster is a resource, such as \"qp\"");
            tenant_.cluster.push_back(*resource);
        }
    }

    void process(const toml::key& key, const toml::node& node) {
        LimitTables(reader_, tenant_header(tenant_.name) + ".process")
            .devices(key, node, tenant_.limits[index(Scope::process)]);
        locations_.process = location(reader_.file(), key.source().begin);
    }

    void sidecar_key(const toml::key& key, const toml::node& node) {
        if (!is_default())
            return reader_.fail(key, fmt::format("{} is possible for the tenant default only; remove it", key.str()));
        if (key == "bypass") return bypass(node);
        backstop(node);
    }

    // This key used to say what is done about a bypass. Policies that name it still load.
    void bypass(const toml::node& node) {
        const auto word = node.value_or(std::string());
        if (word == "report") return;
        if (word != "charge" && word != "limit" && word != "kill")
            return reader_.fail(node, "bypass can only be \"report\", which is the default; remove it");
        policy_.warnings.push_back(
            fmt::format("{}bypass = \"{}\" is no longer possible: a bypass is reported, nothing more; remove it",
                        location(reader_.file(), node.source().begin), word));
    }

    void backstop(const toml::node& node) {
        const auto* text = node.as_string();
        if (text == nullptr || !text->get().starts_with('/') || text->get().size() < 2 || text->get().ends_with('/') ||
            text->get().find_first_of("\n\t") != std::string::npos ||
            (text->get() + "/").find("/../") != std::string::npos || text->get().size() > longest_path_bytes)
            return reader_.fail(node, "backstop is the path of a cgroup below the root, such as \"/slurm\"");
        policy_.sidecar.backstop = text->get();
    }

    TableReader& reader_;
    Policy& policy_;
    TenantPolicy& tenant_;
    TenantLocations& locations_;
};

// One tenant's place in the file.
struct Entry {
    toml::source_position position;  // of its match, else of its name
    const toml::key* key;
    const toml::node* node;
    bool has_match;
};

std::vector<Entry> in_order(const toml::table& tenants) {
    std::vector<Entry> entries;
    for (const auto& [key, node] : tenants) {
        const auto* table = node.as_table();
        const auto* match = table == nullptr ? nullptr : table->get("match");
        entries.push_back(
            {match == nullptr ? key.source().begin : match->source().begin, &key, &node, match != nullptr});
    }
    std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.position < b.position; });
    return entries;
}

void read_tenant(TableReader& reader, const Entry& entry, Policy& policy, LocationsByTenant& locations) {
    const std::string name(entry.key->str());
    const auto* table = entry.node->as_table();
    if (table == nullptr)
        return reader.fail(*entry.key, fmt::format("'{}' is no tenant; write limits below [tenant.{}.\"*\"]",
                                                   printable(name), default_tenant));
    if (const auto good = is_template(name) ? check_template_name(name) : check_tenant_name(name); !good)
        return reader.fail(*entry.key, good.error());
    auto& tenants = policy.tenants;
    policy.tenant(name);
    const auto at =
        std::find_if(tenants.begin(), tenants.end(), [&](const auto& tenant) { return tenant.name == name; });
    // Its entries are tried where they stand now, not where they stood in a file before.
    if (entry.has_match && name != default_tenant) std::rotate(at, at + 1, tenants.end());
    auto& place = locations[name];
    if (place.name.empty()) place.name = location(reader.file(), entry.key->source().begin);
    TenantReader(reader, policy, policy.tenant(name), place).read(*table);
}

}  // namespace

void read_tenants(TableReader& reader, const toml::key& key, const toml::node& node, Policy& policy,
                  LocationsByTenant& locations) {
    const auto* table = reader.as_table(key, node);
    if (table == nullptr) return;
    for (const auto& entry : in_order(*table)) read_tenant(reader, entry, policy, locations);
}

}  // namespace rdmaquota
