// A node: programs that use what they may, a sidecar that is killed between any two steps, and an agent.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include <fmt/core.h>

#include "test/cluster/events.hpp"
#include "tools/cluster/agent/agent.hpp"

namespace rdmaquota::cluster::sim {

class SimNode : public CeilingKeeper::Effects, public Sidecar {
public:
    struct Killed {};
    struct Place {
        std::uint64_t in_force = 0;  // rule 6: until a coordinator assigned something, nothing
        std::uint64_t use = 0, goal = 0;
    };

    SimNode(Events& events, std::string name, std::string hardware)
        : events(events), name(std::move(name)), hardware(std::move(hardware)) {
        boot_up();
    }

    void boot_up() {
        static std::uint64_t boots = 0;  // ids differ between nodes, too
        boot = fmt::format("boot{}", ++boots);
        places.clear();
        saved.reset();
        alive = true;
        start_sidecar();
    }
    void die() {
        alive = false;
        keeper.reset();
        for (auto& [pool, place] : places) place = {};
    }
    void start_sidecar() {
        keeper = std::make_unique<CeilingKeeper>(*this, hardware, boot);
        if (saved) (void)keeper->resume(*saved);
    }

    // CeilingKeeper::Effects. Each step may be the sidecar's last.
    Result<void> save(const std::string& record) override {
        may_die();
        saved = record;
        may_die();
        return {};
    }
    Result<void> put(const PoolName& pool, std::uint64_t amount) override {
        may_die();
        places[pool].in_force = amount;
        may_die();
        return {};
    }
    Result<void> divide() override { return may_die(), Result<void>(); }
    CeilingKeeper::Figures figures(const PoolName& pool) override {
        const auto& place = places[pool];
        return {place.in_force, place.use, std::max(place.use, place.goal)};
    }

    // Sidecar, for the agent.
    Result<NodeReport> take(const Delivery* delivery) override {
        if (!alive || !keeper) return Error{"no sidecar"};
        try {
            if (delivery != nullptr)
                if (const auto taken = keeper->take(*delivery); !taken) return Error{taken.error()};
            return keeper->report();
        } catch (const Killed&) {
            const auto as_before = std::exchange(kills, 0);
            start_sidecar();
            kills = as_before;
            return Error{"killed"};
        }
    }

    // Programs: each pool goes some way towards its goal.
    void run_programs() {
        if (!alive) return;
        for (auto& [pool, place] : places) {
            if (place.use < place.goal && place.use < place.in_force)
                place.use += events.random.below(std::min(place.goal, place.in_force) - place.use) + 1;
            else if (place.use > place.goal) place.use -= events.random.below(place.use - place.goal) + 1;
        }
    }
    std::uint64_t truth(const PoolName& pool) const {
        const auto found = places.find(pool);
        if (!alive || found == places.end()) return 0;
        return std::max(found->second.use, found->second.in_force);
    }

    Events& events;
    std::string name, hardware, boot;
    bool alive = false;
    std::uint64_t kills = 0;  // one in so many steps; 0: none
    std::map<PoolName, Place> places;
    std::optional<std::string> saved;
    std::unique_ptr<CeilingKeeper> keeper;

private:
    // Between two steps programs go on.
    void may_die() {
        if (events.random.one_in(4)) run_programs();
        if (kills != 0 && events.random.one_in(kills)) throw Killed{};
    }
};

}  // namespace rdmaquota::cluster::sim
