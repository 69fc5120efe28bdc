// What the sidecar charges in the name of processes that go around the quota, so that others' shares stay right: for
// each of them it holds an owner slot of the ledger.
//
// One thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "shm/ledger/ledger.hpp"
#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

namespace rdmaquota {

class Charges {
public:
    using ByDevice = std::map<std::string, ResourceCounts>;
    struct Charge {
        Identity whom;
        ByDevice amounts;
    };
    using Wanted = std::map<std::uint32_t, Charge>;  // by process

    // From now on this and no other is charged, as far as the ledger has room.
    void keep(Ledger& ledger, const Wanted& wanted);
    void end(Ledger& ledger) { keep(ledger, {}); }
    // The ledger that was charged is no longer the one in use.
    void forget() { held_.clear(); }

    bool holds(std::uint32_t slot) const;

private:
    struct Held {
        Owner owner;
        ByDevice amounts;
    };
    void change(Ledger& ledger, Held& held, const ByDevice& amounts);

    std::map<std::uint32_t, Held> held_;  // by process
};

}  // namespace rdmaquota
