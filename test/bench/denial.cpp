// denial [--runs N]: ns of a denial at a full tenant with 1, 100 and 4,000 live owners, each of
// which holds one QP. They are claims of this one process: each has an open file description of its
// own, which is what the ledger looks at.
#include "test/bench/books.hpp"
#include "test/bench/measure.hpp"

int main(int argc, char** argv) {
    using namespace rdmaquota;
    using namespace rdmaquota::bench;
    const auto runs = number_option(argc, argv, "--runs", 101);
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
