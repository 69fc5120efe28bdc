// Looks at the system's ledger without repairing it, as `rdmaquota show` would do.
//
//   ledger_look usage RES      what all owners use on all devices
//   ledger_look wait RES N     until it is N, at most 5 seconds; prints how many milliseconds that took
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

#include "shm/ledger.hpp"
#include "shm/paths.hpp"

int main(int argc, char** argv) {
    using namespace rdmaquota;
    using Clock = std::chrono::steady_clock;
    const auto named = find_resource(argc > 2 ? argv[2] : "");
    const auto ledger = Ledger::open(ledger_path(system_directory));
    if (!named || !ledger) return 2;
    const auto resource = *named;
    const auto usage = [&] {
        std::uint64_t sum = 0;
        for (const auto& [device, name] : ledger->devices()) sum += ledger->tenant_usage(device, resource);
        return sum;
    };
    const auto begin = Clock::now();
    const auto passed = [&] { return std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begin).count(); };
    if (std::strcmp(argv[1], "wait") != 0) return std::printf("%llu\n", static_cast<unsigned long long>(usage())) < 0;
    while (usage() != std::strtoull(argv[3], nullptr, 10) && passed() < 5000) usleep(200);
    std::printf("%lld\n", static_cast<long long>(passed()));
}
