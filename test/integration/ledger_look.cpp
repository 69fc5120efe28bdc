// ledger_look RES: what all owners use on all devices of the system's ledger, without repairing it, as
// `rdmaquota show` would do.
#include <cstdio>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"

int main(int argc, char** argv) {
    using namespace rdmaquota;
    const auto resource = find_resource(argc == 2 ? argv[1] : "");
    const auto ledger = Ledger::open(ledger_path(here_path(system_directory)));
    if (!resource || !ledger) return 2;
    unsigned long long sum = 0;
    for (const auto& [device, identity, name] : ledger->devices()) sum += ledger->tenant_usage(device, *resource);
    std::printf("%llu\n", sum);
}
