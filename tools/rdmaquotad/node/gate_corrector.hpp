// Corrects gates that a death in mid-operation left too high: nobody is denied because of them for long.
//
// One thread. Whoever may charge can loosen gates for ever, or begin an operation and never end it; so each pass
// costs a bounded amount of work.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>

#include "shm/ledger/ledger.hpp"
#include "shm/ledger/ledger_copy.hpp"

namespace rdmaquota {

class GateCorrector {
public:
    static constexpr unsigned most_reconciled = 8;  // gates in one pass

    // `copy` is of `ledger`, read just before. Looks at the gates of `devices` and their ports only, and reconciles
    // those that differed from the sum of the slots in several passes in a row. The first view that is not quiescent
    // ends the pass: another gate would see the same operations in flight. Returns how many gates it corrected.
    unsigned pass(Ledger& ledger, const LedgerCopy& copy, const std::set<std::string>& devices);

private:
    void compare(const LedgerCopy& copy, const std::set<std::string>& devices);

    static constexpr std::size_t cells = device_slots * resource_count;
    std::array<std::uint8_t, cells> loose_{};  // passes in a row in which the gate of a device and resource differed
    std::size_t next_ = 0;                     // the cell with which the next pass begins to reconcile
};

}  // namespace rdmaquota
