// death [--runs N]: a process charges 1,000 QPs one by one, as many as the tenant may have, and is
// killed. ns of the next process's charge, which finds what the dead one held; and the usage seen
// after it, which is 1.
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include "test/processes.hpp"
#include "test/bench/accounting.hpp"
#include "test/bench/measure.hpp"

namespace {

using namespace rdmaquota;
using namespace rdmaquota::bench;

constexpr unsigned qps = 1000;

Limits tenant_limit(std::uint64_t limit) {
    Limits limits;
    limits.tenant = limit;
    return limits;
}

// Returns when the child holds everything.
pid_t start_holder(const TemporaryLedger& temporary, const Limits* limits) {
    int ready[2];
    if (pipe(ready) != 0) give_up("no pipe");
    const pid_t child = fork_child();
    if (child == 0) {
        auto ledger = temporary.open();
        const auto owner = TemporaryLedger::claim(ledger);
        const auto device = ledger.device_index("bench0").value();
        for (unsigned i = 0; i < qps; ++i)
            if (ledger.charge(owner, device, one_qp(), limits)) _exit(1);
        if (write(ready[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    close(ready[1]);
    char byte = 0;
    if (read(ready[0], &byte, 1) != 1) give_up("the holder did not get its QPs");
    close(ready[0]);
    return child;
}

}  // namespace

int main(int argc, char** argv) {
    const auto runs = number_option(argc, argv, "--runs", 21);
    std::array<Limits, Amounts::capacity> limits = far_limits();
    limits[0] = tenant_limit(qps);
    std::vector<double> next;
    std::vector<double> later;
    std::vector<double> usage;
    for (unsigned i = 0; i < runs; ++i) {
        const TemporaryLedger temporary;
        auto ledger = temporary.open();
        const auto device = ledger.device_index("bench0").value();
        const auto owner = TemporaryLedger::claim(ledger);
        const pid_t holder = start_holder(temporary, limits.data());
        if (!ledger.charge(owner, device, one_qp(), limits.data())) give_up("charged above the limit");
        kill_child(holder);

        auto start = now_ns();
        const auto denial = ledger.charge(owner, device, one_qp(), limits.data());
        next.push_back(elapsed_ns(start));
        if (denial) give_up("denied although the holder is dead");
        usage.push_back(static_cast<double>(ledger.tenant_usage(device, Resource::qp)));
        start = now_ns();
        if (ledger.charge(owner, device, one_qp(), limits.data())) give_up("denied with room left");
        later.push_back(elapsed_ns(start));
    }
    print("death.next", next);
    print("death.later", later);
    print("death.usage", usage);
}
