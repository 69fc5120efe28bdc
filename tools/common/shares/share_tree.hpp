// The tree of tenants as shares are moved in it: what each may use, has and wants, by device and resource.
//
// One thread. What was read is kept until it changes, so that a pass over tenants that do nothing costs next to nothing,
// and allocates nothing. For each tenant, device and resource it keeps 80 bytes.
#pragma once

#include <algorithm>
#include <array>
#include <bitset>
#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/policy.hpp"
#include "policy/resource.hpp"
#include "shm/ledger/ledger_gates.hpp"
#include "shm/policy/limits_segment.hpp"

namespace rdmaquota {

// One tenant that takes part: not a template. All of it lives as long as a pass lasts.
struct ShareMember {
    std::string_view key;
    std::string_view name;  // as it is shown
    std::string_view here;
    const LimitsSegment* limits;  // of all parts
    bool has_ledger;
    bool at_rest = false;  // nothing happens in its ledger
};

// What the kernel counts of a tenant on a device. Of some resources it does not have all that programs are charged for.
struct CountedUse {
    std::string device;
    std::array<std::uint64_t, resource_count> used{};
    std::bitset<resource_count> whole;  // of which it has all
    bool operator==(const CountedUse&) const = default;
};
// Fills in what the kernel counts of the tenant with this key, by device; nothing where it does not count. What is used is
// then the kernel's figure where that is whole, whatever a ledger says, else the larger one.
using CountedUses = std::function<void(std::string_view key, std::vector<CountedUse>& uses)>;

class ShareTree {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::size_t root = 0;  // the node
    // An asking counts as long as this, so that somebody who asks again meanwhile finds what became free.
    static constexpr std::chrono::seconds asking_lasts{10};

    // Of one tenant, for a device and a resource. For the device "total": of the sum.
    struct Cell {
        std::uint64_t limit = unlimited, guarantee = 0, granted = unset;
        std::uint64_t used = 0;    // the amount in the gates of a leaf, or the kernel's
        std::uint64_t need = 0;    // the same, or what was asked for where that is more
        std::uint64_t wanted = 0;  // see `wanted`
        std::uint64_t lately = 0;  // the highest need of the last ten seconds, unless it fell by more than a few steps
        Clock::time_point lately_ends{};
        std::uint64_t earmarked = 0;  // what it asked for and is to have as others free it
        // What it can really have charged: the highest share since it used more than its share. What a gate says beyond is
        // forged, and takes nothing from others.
        std::uint64_t ceiling = max_amount;

        std::uint64_t bound() const noexcept { return granted == unset ? limit : granted; }
        // Whether more was asked for than it has.
        bool is_unmet() const noexcept { return granted != unset && need > std::max(granted, used); }
    };
    struct Ask {
        std::uint64_t word = 0, amount = 0;
        Clock::time_point until{};
    };
    using Asks = std::array<Ask, limit_count>;
    struct Tenant {
        std::string key, name, limits_path, ledger_path;
        const LimitsSegment* limits = nullptr;  // null: there are none, and so no bounds
        bool has_ledger = false, at_rest = false;
        std::size_t parent = root;
        std::vector<std::size_t> children;
        std::uint32_t weight = default_weight;

        std::vector<Cell> cells;  // by pair
        std::uint64_t id = 0, generation = 0;  // of the limits that the cells are from
        GateReader gates;
        std::vector<CountedUse> kernel;
        std::vector<Asks> asks;  // by device of the ledger
        Clock::time_point ask_ends = Clock::time_point::max();  // when the first of those ends, or of what was needed lately
        bool in_use = false;
        bool must_bump = false;  // shares are not those that were left here: programs may not know them

        bool is_leaf() const noexcept { return children.empty() && has_ledger; }
        // Became an inner one while it was used: its programs keep what they have.
        bool was_leaf() const noexcept { return !children.empty() && has_ledger; }
        std::uint64_t own_use(std::size_t pair) const noexcept { return was_leaf() ? cells[pair].used : 0; }
        // Whether its limits hold; in the mode audit it may have more than its share.
        bool denies() const noexcept { return limits == nullptr || limits->mode() == Mode::enforce; }
        bool is_inner() const noexcept { return limits != nullptr && !children.empty(); }
    };

    // Takes over who is there, and reads what changed. `machine`: the devices of this machine. True when tenants or devices are
    // others than before, so that numbers mean something else.
    bool update(std::span<const ShareMember> members, std::span<const std::string> machine);
    // Reads what is used by one, by key or name, or by all; of the empty name. Where `end` comes before all are read, the next
    // call of the kind goes on with the others. True when the last of them has been read.
    bool read_gates(Clock::time_point now, std::string_view only = {}, Clock::time_point end = Clock::time_point::max());
    void read_gates_of(Tenant& tenant, Clock::time_point now);
    void ask_kernel(CountedUses uses) { kernel_uses_ = std::move(uses); }

    // A pair is a device and a resource or a rate. Of a rate nothing is used, and who has a device open, or asks, wants all.
    std::size_t pairs() const noexcept { return devices_.size() * limit_count; }
    const std::string& device_of(std::size_t pair) const noexcept { return devices_[pair / limit_count]; }
    static Resource resource_of(std::size_t pair) noexcept { return static_cast<Resource>(pair % limit_count); }
    // Whether some inner tenant, or the node, has a limit.
    bool is_bounded(std::size_t pair) const noexcept { return bounded_[pair] != 0; }
    // Whether something changed since the last call.
    bool take_changed(std::size_t pair) noexcept { return std::exchange(changed_[pair], std::uint8_t{0}) != 0; }

    std::vector<Tenant>& tenants() noexcept { return tenants_; }
    const std::vector<Tenant>& tenants() const noexcept { return tenants_; }
    // Children before their parents, the node last.
    const std::vector<std::size_t>& upwards() const noexcept { return upwards_; }
    // What is used, in steps; never less than it is.
    std::uint64_t used_in_steps(const Tenant& tenant, std::size_t pair) const noexcept;
    // What a leaf wants in all, with headroom; changes in steps only.
    std::uint64_t wanted(Tenant& tenant, std::size_t pair) noexcept;

private:
    bool is_same(std::span<const ShareMember> members) const noexcept;
    void place(std::span<const ShareMember> members);
    void order();
    bool has_other_devices(std::span<const std::string> machine) const;
    bool is_read(const Tenant& tenant) const noexcept;
    void list_devices(std::span<const std::string> machine);
    void read_limits(Tenant& tenant);
    void read_weight(Tenant& tenant);
    void find_bounded();
    void take_asks(Tenant& tenant, Clock::time_point now);
    void read_gates_if_used(Tenant& tenant, Clock::time_point now);
    bool read_kernel(Tenant& tenant);
    void sum_up(Tenant& tenant, Clock::time_point now);
    bool keep_lately(Cell& cell, std::uint64_t before, std::size_t pair, Clock::time_point now) noexcept;
    void add_gates(Tenant& tenant, std::size_t number, Clock::time_point now);
    void add_kernel(const Tenant& tenant);
    struct Sum {
        std::uint64_t used, need;
        bool whole;  // the kernel has all of it on some device
    };
    using Places = std::array<std::size_t, 2>;  // a device's number, and that of the sum
    Places places_of(std::string_view device) const noexcept;
    void add_to_sum(const Places& places, std::size_t resource, const Sum& more);
    std::size_t device_number(std::string_view device) const noexcept;

    std::vector<Tenant> tenants_;  // the node first
    std::vector<std::size_t> members_;  // their tenants, in the order of the last members
    std::vector<std::size_t> upwards_;
    std::vector<std::string> machine_, devices_;
    std::size_t left_to_read_ = 0;
    std::vector<std::uint8_t> changed_, bounded_;  // by pair
    std::vector<Sum> sums_;  // room for sum_up
    CountedUses kernel_uses_;
    std::vector<CountedUse> uses_;  // room for read_kernel
};

// What somebody who needs `need` is given, so that it does not ask for each object: a step more, of about an eighth.
std::uint64_t add_headroom(Resource resource, std::uint64_t need) noexcept;

// What a leaf's share and its usage take of the tenants above.
std::uint64_t committed(const ShareTree::Cell& cell) noexcept;

}  // namespace rdmaquota
