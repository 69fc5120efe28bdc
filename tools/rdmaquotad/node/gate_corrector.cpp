#include "tools/rdmaquotad/node/gate_corrector.hpp"

#include <algorithm>
#include <utility>

#include "tools/common/devices.hpp"

namespace rdmaquota {
namespace {

constexpr unsigned passes_before = 4;  // a gate that is in use differs now and then

}  // namespace

void GateCorrector::compare(const LedgerCopy& copy, const std::set<std::string>& devices) {
    const auto before = std::exchange(loose_, {});
    for (const auto& [device, name] : devices_of(copy)) {
        if (!devices.contains(std::string(without_port(name)))) continue;
        for (const auto& row : resource_table) {
            if (copy.gate(device, row.id) == copy.tenant_usage(device, row.id)) continue;
            const auto cell = device * resource_count + index(row.id);
            loose_[cell] = static_cast<std::uint8_t>(std::min(before[cell] + 1U, passes_before));
        }
    }
}

unsigned GateCorrector::pass(Ledger& ledger, const LedgerCopy& copy, const std::set<std::string>& devices) {
    compare(copy, devices);
    unsigned corrected = 0, reconciled = 0;
    for (std::size_t tried = 0; tried < cells && reconciled < most_reconciled; ++tried) {
        const auto cell = std::exchange(next_, (next_ + 1) % cells);
        if (loose_[cell] < passes_before) continue;
        loose_[cell] = 0;
        ++reconciled;
        const auto device = static_cast<std::uint32_t>(cell / resource_count);
        const auto view = ledger.reconcile(device, static_cast<Resource>(cell % resource_count));
        if (view == Ledger::View::corrected) ++corrected;
        if (view == Ledger::View::not_quiescent) break;
    }
    return corrected;
}

}  // namespace rdmaquota
