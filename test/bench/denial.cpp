// denial [--runs N]: ns of a denial at a full tenant with 1, 100 and 4,000 live owners, each of
// which holds one QP. They are claims of this one process: each has an open file description of its
// own, which is what the ledger looks at. And ns of the least system call, since each owner is asked by one.
#include <fcntl.h>
#include <unistd.h>

#include "test/bench/accounting.hpp"
#include "test/bench/measure.hpp"

namespace {

double system_call_ns() {
    constexpr int calls = 100'000;
    const auto start = rdmaquota::bench::now_ns();
    for (int i = 0; i < calls; ++i) fcntl(STDIN_FILENO, F_GETFD);
    return rdmaquota::bench::elapsed_ns(start) / calls;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace rdmaquota;
    using namespace rdmaquota::bench;
    const auto runs = number_option(argc, argv, "--runs", 101);
    std::vector<double> call_ns;
    for (unsigned i = 0; i < 11; ++i) call_ns.push_back(system_call_ns());
    print("denial_call", call_ns);
    for (const unsigned owners : {1U, 100U, 4000U}) {
        const TemporaryLedger temporary;
        auto ledger = temporary.open();
        const auto device = ledger.device_index("bench0").value();
        const auto one = Amounts{}.add(Resource::qp, 1);
        Limits limits;
        limits.tenant = owners;
        std::vector<Owner> held;
        for (unsigned i = 0; i < owners; ++i) {
            held.push_back(TemporaryLedger::claim(ledger));
            if (ledger.charge(held.back(), device, one, &limits)) give_up("denied with room left");
        }
        std::vector<double> ns;
        bool proved = true;
        for (unsigned i = 0; i < runs; ++i) {
            const auto start = now_ns();
            const auto denial = ledger.charge(held.front(), device, one, &limits);
            ns.push_back(elapsed_ns(start));
            if (!denial) give_up("charged above the limit");
            proved &= denial->proved;
        }
        print("denial." + std::to_string(owners), ns);
        print("denial_proved." + std::to_string(owners), proved ? 1 : 0);
    }
}
