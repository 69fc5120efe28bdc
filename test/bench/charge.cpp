// charge [--runs N] [--pairs N]: ns of a charge and its release, one thread, for one resource and
// for what a QP costs.
// And of one locked operation on a word that no other processor has, of which a resource takes four.
// charge --one N | --qp N [SIDE]: N pairs of this side, ours if none is named, and no output, for counting instructions.
#include <cstring>

#include "shm/atomic.hpp"
#include "test/bench/accounting.hpp"
#include "test/bench/measure.hpp"

namespace {

using namespace rdmaquota;
using namespace rdmaquota::bench;

double pair_ns(Accounting& accounting, const Amounts& amounts, unsigned pairs) {
    const auto limits = far_limits();
    const auto start = now_ns();
    for (unsigned i = 0; i < pairs; ++i) {
        if (!accounting.charge(amounts, limits.data())) give_up("denied with room left");
        accounting.uncharge(amounts);
    }
    return elapsed_ns(start) / pairs;
}

double locked_ns(unsigned operations) {
    static std::uint64_t word = 0;
    const auto start = now_ns();
    for (unsigned i = 0; i < operations; ++i) add(word, 1);
    return elapsed_ns(start) / operations;
}

int count_only(const char* what, unsigned pairs, const std::string& name) {
    for (const auto& side : sides) {
        if (name != side.name) continue;
        const auto site = side.make();
        const auto accounting = site->join();
        pair_ns(*accounting, std::strcmp(what, "--one") == 0 ? one_resource() : one_qp(), pairs);
        return 0;
    }
    give_up("no side " + name);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc > 2 && (std::strcmp(argv[1], "--one") == 0 || std::strcmp(argv[1], "--qp") == 0))
        return count_only(argv[1], number_option(argc, argv, argv[1], 1), argc > 3 ? argv[3] : "ours");
    const auto runs = number_option(argc, argv, "--runs", 15);
    const auto pairs = number_option(argc, argv, "--pairs", 200'000);
    const std::pair<const char*, Amounts> costs[] = {{"one", one_resource()}, {"qp", one_qp()}};
    std::vector<double> locked;
    for (unsigned run = 0; run < runs; ++run) locked.push_back(locked_ns(pairs));
    print("charge.locked", locked);
    for (const auto& [name, amounts] : costs) {
        std::vector<double> ns[sides.size()];
        // Sides by turns, so that what else the machine does meets all of them.
        for (unsigned run = 0; run < runs; ++run)
            for (std::size_t s = 0; s < sides.size(); ++s) {
                const auto site = sides[s].make();
                const auto accounting = site->join();
                const auto share = std::strcmp(sides[s].name, "socket") == 0 ? pairs / 50 : pairs;
                pair_ns(*accounting, amounts, share / 10);
                ns[s].push_back(pair_ns(*accounting, amounts, share));
            }
        for (std::size_t s = 0; s < sides.size(); ++s)
            print(std::string("charge.") + name + "." + sides[s].name, ns[s]);
    }
}
