// Which row of the guard counts what: one for each tenant, with the inner ones and the node, on each device; one for what
// each process of a tenant may use there; one for the sum over devices where the tenant has a limit for that. Keeps their
// limits as they are configured, or as a dynamic rule lowers them: the tree's own rows bound what a parent may use, so
// that shares are not needed here.
//
// Which row is whose is kept in the kernel too: another GuardRows of the same rows goes on where this one ended.
//
// One thread, and one process at a time. The program reads the rows at any time; a limit is one word.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "policy/resource.hpp"
#include "policy/scope.hpp"
#include "tools/common/devices.hpp"
#include "tools/common/guard/guard_names.hpp"
#include "tools/common/guard/kernel_counts.h"
#include "tools/common/shares/share_tree.hpp"

namespace rdmaquota {

// The resource, or the rate, at a place of a row; none at those that have no limit.
std::optional<Resource> guarded_resource(std::uint32_t place) noexcept;

using GuardAmounts = std::array<u64, guard_resources>;

class GuardRows {
public:
    using Members = std::vector<ShareMember>;

    // `follow`: changes the limits of rows that there are, since another process may add some. `add`: adds rows, too. `drop`: takes
    // away those that nothing needs as well; only the sidecar can, which makes all forget whom a row was known for.
    enum class May : std::uint8_t { follow, add, drop };
    GuardRows(guard_row* rows, const GuardNames& names, May may = May::drop);

    // Follows tenants, devices (their identities) and limits. True when tenants or devices are others than before, so that who was known must be
    // asked for again.
    bool update(const Members& tenants, const std::vector<std::string>& devices);

    // Where a process of the tenant with this key counts on a device, given by its identity; none when there is no such tenant or device.
    std::optional<guard_stamp> stamp(std::string_view tenant, std::string_view device) const;

    // The same for one who is not known: that of `default`, or of the node where there is no such tenant.
    std::optional<guard_stamp> waiting_stamp(std::string_view device) const;
    // An enforced limit of the row, of what there is something in `by`; also over all devices.
    bool is_exceeded(std::uint32_t row, const GuardAmounts& by) const noexcept;

    struct Meaning {
        std::string tenant;    // as it is shown
        std::string identity;  // the device's, see UverbsDevices, or "total"
        Scope scope;
        std::string key = {};  // the tenant's
        std::string device() const { return UverbsDevices::now().name(identity); }
    };
    // Whose a row is. For a process's row, that of its tenant's processes.
    const Meaning* meaning(std::uint32_t row) const;

    // Each tenant's row on each device, by the tenant's key and the device's identity.
    using Place = std::pair<std::string, std::string>;
    const std::map<Place, std::uint32_t, std::less<>>& tenants() const noexcept { return tenants_; }
    const guard_row& row(std::uint32_t number) const noexcept { return rows_[number]; }
    // What the kernel counts of a tenant; see CountedUses.
    void add_uses(std::string_view tenant, std::vector<CountedUse>& uses) const;
    // How many rows were wanted in the last update and not there, since there are too many: nothing holds in their place.
    std::size_t without() const noexcept { return without_; }

private:
    std::uint64_t used_by(std::uint32_t row, std::uint32_t place) const noexcept;
    std::uint64_t used_by_process(const guard_row& own, std::uint32_t place) const noexcept;
    using Key = std::tuple<std::string, std::string, Scope>;  // tenant, device's identity or "total", scope
    void enter(const Key& key, const std::string& name, std::uint32_t number);
    std::uint32_t have(const Key& key, std::string_view name);
    std::uint32_t take_free();
    void follow(const ShareMember& tenant, const std::vector<std::string>& devices);
    void follow_device(const ShareMember& tenant, const std::string& device);
    std::uint32_t follow_total(const ShareMember& tenant, Scope scope);
    void have_node(const std::vector<std::string>& devices);
    void link(const std::string& tenant, const std::vector<std::string>& devices);
    void refresh_processes();
    void drop_unused(const Members& tenants, const std::vector<std::string>& devices);
    std::set<std::uint32_t> referred_to() const;
    void link_rest(const std::set<std::string_view>& there);

    guard_row* rows_;
    GuardNames names_;
    May may_;
    std::map<Key, std::uint32_t> numbers_;
    std::map<Place, std::uint32_t, std::less<>> tenants_;
    struct Denies {
        int with;  // errno
        bool never;
        bool operator==(const Denies&) const = default;
    };
    std::map<std::string, Denies, std::less<>> denies_;  // by tenant
    std::map<std::uint32_t, Meaning> meanings_;
    std::vector<std::uint32_t> free_;
    std::uint32_t next_ = process_rows;
    std::size_t without_ = 0;
    std::vector<std::string> known_;  // tenants and devices of the last update
};

}  // namespace rdmaquota
