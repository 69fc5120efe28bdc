// denial [--runs N]: ns of CPU of a denial at a full tenant with 1, 100, 512 and 4,000 live owners, each of which holds one QP;
// and of the first charge after one of the owners was killed. All but that one are claims of this one process: each has an
// open file description of its own, which is what the ledger looks at. And ns of the least system call, since each owner
// is asked by one. By CPU time: what else runs on the machine does not count, and nothing here waits.
#include <ctime>
#include <deque>

#include <fcntl.h>
#include <unistd.h>

#include "test/bench/accounting.hpp"
#include "test/bench/measure.hpp"
#include "test/processes.hpp"

namespace {

using namespace rdmaquota;
using namespace rdmaquota::bench;

const Amounts one = Amounts{}.add(Resource::qp, 1);

std::uint64_t cpu_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000 + static_cast<std::uint64_t>(time.tv_nsec);
}
double elapsed_cpu_ns(std::uint64_t since) { return static_cast<double>(cpu_ns() - since); }

double system_call_ns() {
    constexpr int calls = 100'000;
    const auto start = cpu_ns();
    for (int i = 0; i < calls; ++i) fcntl(STDIN_FILENO, F_GETFD);
    return elapsed_cpu_ns(start) / calls;
}

// One more owner, which takes the last QP when it is told to, until it is killed. It is forked while this process has few
// mappings, so that what fork leaves in the caches is not measured.
class Holder {
public:
    explicit Holder(const TemporaryLedger& ledger) : child_([&] { hold(ledger); }) {
        close(go_[0]);
        close(ready_[1]);
    }
    void take() {
        char byte = 0;
        close(go_[1]);
        if (read(ready_[0], &byte, 1) != 1) give_up("the holder did not get its QP");
        close(ready_[0]);
    }
    void die() { child_.end(); }

private:
    struct Pipe {
        int ends[2];
        Pipe() {
            if (pipe(ends) != 0) give_up("no pipe");
        }
        int& operator[](int i) { return ends[i]; }
    };
    void hold(const TemporaryLedger& ledger) {
        char byte = 0;
        close(go_[1]);
        if (read(go_[0], &byte, 1) != 0) _exit(1);
        auto own = ledger.open();
        const auto owner = TemporaryLedger::claim(own);
        const Limits none;
        if (own.charge(owner, own.device_index("bench0").value(), one, &none) || write(ready_[1], "x", 1) != 1) _exit(1);
        for (;;) pause();
    }
    Pipe go_, ready_;
    ChildProcess child_;
};

// A tenant in which so many owners have a QP each, and no more fits.
struct FullTenant {
    static constexpr unsigned deaths = 11;
    const TemporaryLedger temporary;
    std::deque<Holder> holders;
    Ledger ledger = temporary.open();
    const std::uint32_t device = ledger.device_index("bench0").value();
    Limits limits;
    std::vector<Owner> held;

    explicit FullTenant(unsigned owners) {
        // The newest is the first, since it has the pipes of the others open.
        for (unsigned i = 0; i < deaths; ++i) holders.emplace_front(temporary);
        limits.tenant = owners;
        for (unsigned i = 0; i < owners; ++i) {
            held.push_back(TemporaryLedger::claim(ledger));
            if (ledger.charge(held.back(), device, one, &limits)) give_up("denied with room left");
        }
    }

    double denial_ns() {
        const auto start = cpu_ns();
        const auto denial = ledger.charge(held.front(), device, one, &limits);
        const auto ns = elapsed_cpu_ns(start);
        if (!denial) give_up("charged above the limit");
        if (!denial->proved) give_up("a denial was not proved");
        return ns;
    }

    double after_death_ns() {
        ++limits.tenant;
        holders.front().take();
        denial_ns();
        holders.front().die();
        const auto start = cpu_ns();
        const auto denial = ledger.charge(held.front(), device, one, &limits);
        const auto ns = elapsed_cpu_ns(start);
        if (denial) give_up("denied although the holder is dead");
        ledger.uncharge(held.front(), device, one);
        --limits.tenant;
        holders.pop_front();
        return ns;
    }
};

}  // namespace

int main(int argc, char** argv) {
    const auto runs = number_option(argc, argv, "--runs", 101);
    std::vector<double> call_ns;
    for (unsigned i = 0; i < 11; ++i) call_ns.push_back(system_call_ns());
    print("denial_call", call_ns);
    for (const unsigned owners : {1U, 100U, 512U, 4000U}) {
        FullTenant tenant(owners);
        std::vector<double> denied, after_death;
        for (unsigned i = 0; i < runs; ++i) denied.push_back(tenant.denial_ns());
        for (unsigned i = 0; i < FullTenant::deaths; ++i) after_death.push_back(tenant.after_death_ns());
        print("denial." + std::to_string(owners), denied);
        print("denial_after_death." + std::to_string(owners), after_death);
    }
}
