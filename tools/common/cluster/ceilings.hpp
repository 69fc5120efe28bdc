// What the cluster lets this node use: one ceiling for each pool, which a coordinator assigns and the sidecar keeps.
//
// A pool is a tenant's resource, summed over the devices of all nodes. A ceiling is this node's part of it: an effective limit of the
// tenant's row "total", with Reason::cluster. docs/cluster.md has the whole; test/model/cluster.pml is the protocol in Promela.
//
// One thread. Nothing here logs, opens files or knows the time: CeilingKeeper::Effects does, so that a simulation runs this code.
#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/limit.hpp"
#include "policy/resource.hpp"
#include "policy/result.hpp"

namespace rdmaquota {

struct PoolName {
    std::string tenant;  // its key, as `physics/atlas`
    Resource resource{};
    auto operator<=>(const PoolName&) const = default;
};

struct Ceiling {
    std::uint64_t id = 0;  // of the pool; a pool that is removed and added again has another
    PoolName pool;
    std::uint64_t amount = unset;  // `unset`: not assigned yet, what is in force stays; `unlimited`: the pool was removed
    bool operator==(const Ceiling&) const = default;
};

// What a coordinator sends: all pools of the cluster. A pool that is not among them was removed, and bounds nothing any more.
struct Delivery {
    std::uint64_t cluster_epoch = 0;  // of the cluster, now
    std::uint64_t epoch = 0;          // in which the ceilings were assigned
    std::uint64_t number = 0;         // of the assignment; later ones have higher numbers in an epoch
    std::string boot;                 // which the ceilings are for; empty: the node was forgotten, all its ceilings are 0
    std::vector<Ceiling> ceilings;
    bool operator==(const Delivery&) const = default;
};

struct PoolUse {
    std::uint64_t id = 0;
    std::uint64_t bound = 0;  // max(use, ceiling in force): the node cannot have more before it takes another ceiling
    std::uint64_t use = 0;
    std::uint64_t want = 0;   // what its programs would use in all if they could
    bool operator==(const PoolUse&) const = default;
};

// What a node says of itself. `epoch` and `number` acknowledge a delivery: its ceilings are in force.
struct NodeReport {
    std::string hardware, boot;
    std::uint64_t epoch = 0, number = 0;
    std::vector<PoolUse> pools;  // those of the last delivery
    bool operator==(const NodeReport&) const = default;
};

// The ceilings that were taken last, and from when.
struct CeilingRecord {
    std::uint64_t epoch = 0, number = 0;
    std::vector<Ceiling> ceilings;

    // Takes a delivery, or only its epoch, or nothing when an equal or later one was taken. True when ceilings were taken.
    bool take(const Delivery& delivery, std::string_view boot);
    std::string text() const;
    // Of text(); an error where it is damaged.
    static Result<CeilingRecord> parse(std::string_view text);
    bool operator==(const CeilingRecord&) const = default;

private:
    void learn(const std::vector<Ceiling>& told);
};

class CeilingKeeper {
public:
    struct Figures {
        std::uint64_t in_force = unlimited;  // `unlimited`: the tenant has no ceiling
        std::uint64_t use = 0, want = 0;
    };
    class Effects {
    public:
        virtual ~Effects() = default;
        virtual Result<void> save(const std::string& record) = 0;  // until the node boots
        // Puts a ceiling in force, and makes programs see it at their next charge. Nothing to do where the node lacks the tenant.
        virtual Result<void> put(const PoolName& pool, std::uint64_t amount) = 0;
        // After all were put: makes them hold for tenants below.
        virtual Result<void> divide() = 0;
        virtual Figures figures(const PoolName& pool) = 0;  // read from the gates now
    };

    CeilingKeeper(Effects& effects, std::string hardware, std::string boot)
        : effects_(effects), hardware_(std::move(hardware)), boot_(std::move(boot)) {}

    // A sidecar that starts: puts in force again what the one before it saved. After an error no ceiling is taken, since an
    // older one than before could be among them; the coordinator counts the node as away then.
    Result<void> resume(std::string_view saved);
    // Rules 1, 3, 4: saves, lowers, and only then reads the gates for the report that acknowledges it.
    Result<void> take(const Delivery& delivery);
    NodeReport report() const;
    // For tenants that came since.
    Result<void> put_again();
    const CeilingRecord& record() const noexcept { return record_; }

private:
    Result<void> put_all();

    Effects& effects_;
    std::string hardware_, boot_;
    CeilingRecord record_;
    std::uint64_t acknowledged_ = 0;
    bool damaged_ = false;
};

}  // namespace rdmaquota
