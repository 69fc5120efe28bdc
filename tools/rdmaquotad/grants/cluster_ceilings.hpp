// The ceilings of the cluster on this node: taken from the agent, put in the tenants' limits, and what is used below them.
//
// One thread.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "shm/ledger/ledger_gates.hpp"
#include "tools/common/cluster/ceilings.hpp"
#include "tools/rdmaquotad/grants/grants.hpp"
#include "tools/rdmaquotad/node/node.hpp"

namespace rdmaquota {

class ClusterCeilings : private CeilingKeeper::Effects {
public:
    using Clock = std::chrono::steady_clock;
    ClusterCeilings(Node& node, Grants& grants) : node_(node), grants_(grants) {}

    // Puts in force again what an earlier sidecar was told, also for tenants that came since. Reads nothing but a file's absence in a node
    // that is in no cluster.
    Result<void> look_after();
    // Takes a delivery, when there is one; then reads the figures.
    Result<NodeReport> report(const Delivery* delivery);

    // Whether the cluster bounds the tenant, or one above it, and an agent asked lately.
    bool may_raise(std::string_view tenant) const;
    // How many deliveries were taken.
    std::uint64_t taken() const noexcept { return taken_; }

private:
    Result<void> begin();
    Result<void> save(const std::string& record) override;
    Result<void> put(const PoolName& pool, std::uint64_t amount) override;
    Result<void> divide() override;
    CeilingKeeper::Figures figures(const PoolName& pool) override;

    struct Ask {
        std::uint64_t word = 0;
        Clock::time_point until{};
    };
    struct Gates {
        GateReader reader;
        std::map<std::pair<std::string, Resource>, Ask> asks;  // by device
    };
    void add_leaf(const Tenant& tenant, Resource resource, bool is_share, CeilingKeeper::Figures& figures);

    Node& node_;
    Grants& grants_;
    std::unique_ptr<CeilingKeeper> keeper_;
    std::map<std::string, Gates> gates_;  // by tenant
    std::string problem_;
    std::uint64_t taken_ = 0;
    Clock::time_point asked_{};
};

}  // namespace rdmaquota
