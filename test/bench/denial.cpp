// denial [--runs N]: ns of a denial at a full tenant with 1, 100 and 4,000 live owners, each of which holds one QP: the
// first of a process, and those after it has begun to watch for deaths; and of the first charge after one of the owners
// was killed. All but that one are claims of this one process: each has an open file description of its own, which is
// what the ledger looks at. And ns of the least system call, since each owner is asked by one.
#include <chrono>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

#include "shm/death_watch.hpp"
#include "test/bench/accounting.hpp"
#include "test/bench/measure.hpp"
#include "test/processes.hpp"

namespace {

using namespace rdmaquota;
using namespace rdmaquota::bench;

const Amounts one = Amounts{}.add(Resource::qp, 1);

double system_call_ns() {
    constexpr int calls = 100'000;
    const auto start = now_ns();
    for (int i = 0; i < calls; ++i) fcntl(STDIN_FILENO, F_GETFD);
    return elapsed_ns(start) / calls;
}

// A tenant in which so many owners have a QP each, and no more fits.
struct FullTenant {
    const TemporaryLedger temporary;
    Ledger ledger = temporary.open();
    const std::uint32_t device = ledger.device_index("bench0").value();
    Limits limits;
    std::vector<Owner> held;

    explicit FullTenant(unsigned owners) {
        limits.tenant = owners;
        for (unsigned i = 0; i < owners; ++i) {
            held.push_back(TemporaryLedger::claim(ledger));
            if (ledger.charge(held.back(), device, one, &limits)) give_up("denied with room left");
        }
    }

    double denial_ns() {
        const auto start = now_ns();
        const auto denial = ledger.charge(held.front(), device, one, &limits);
        const auto ns = elapsed_ns(start);
        if (!denial) give_up("charged above the limit");
        if (!denial->proved) give_up("a denial was not proved");
        return ns;
    }

    // What one more owner does, which takes the last QP, until it is killed.
    void hold(int ready) const {
        auto own = temporary.open();
        const auto owner = TemporaryLedger::claim(own);
        if (own.charge(owner, device, one, &limits) || write(ready, "x", 1) != 1) _exit(1);
        for (;;) pause();
    }

    double after_death_ns() {
        int ready[2];
        if (pipe(ready) != 0) give_up("no pipe");
        ++limits.tenant;
        ChildProcess child([&] { hold(ready[1]); });
        char byte = 0;
        close(ready[1]);
        if (read(ready[0], &byte, 1) != 1) give_up("the holder did not get its QP");
        close(ready[0]);
        denial_ns();
        child.end();
        const auto start = now_ns();
        const auto denial = ledger.charge(held.front(), device, one, &limits);
        const auto ns = elapsed_ns(start);
        if (denial) give_up("denied although the holder is dead");
        ledger.uncharge(held.front(), device, one);
        --limits.tenant;
        return ns;
    }
};

void settle() { std::this_thread::sleep_for(std::chrono::nanoseconds(DeathWatch::settled)); }

}  // namespace

int main(int argc, char** argv) {
    const auto runs = number_option(argc, argv, "--runs", 101);
    std::vector<double> call_ns;
    for (unsigned i = 0; i < 11; ++i) call_ns.push_back(system_call_ns());
    print("denial_call", call_ns);
    for (const unsigned owners : {1U, 100U, 4000U}) {
        const auto name = std::to_string(owners);
        FullTenant tenant(owners);
        std::vector<double> first, later, after_death;
        for (unsigned i = 0; i <= DeathWatch::denials_before; ++i) first.push_back(tenant.denial_ns());
        settle();
        tenant.denial_ns();
        for (unsigned i = 0; i < runs; ++i) later.push_back(tenant.denial_ns());
        for (unsigned i = 0; i < 11; ++i) after_death.push_back(tenant.after_death_ns());
        print("denial_first." + name, first);
        print("denial." + name, later);
        print("denial_after_death." + name, after_death);
    }
}
