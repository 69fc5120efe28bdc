// Many processes and threads, killed and stopped at random instants.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "storm.hpp"
#include "test/processes.hpp"

namespace storm {
namespace {

constexpr int workers = 6;
constexpr int elders = 2;  // of them, the last ones; they mostly live long enough to watch for deaths
constexpr int threads = 2;
constexpr std::uint64_t tight = 7;                                        // QPs for all: fewer than all want
constexpr std::uint64_t each = 3;                                         // PDs that a thread holds at most
constexpr std::uint64_t roomy = std::uint64_t{each} * threads * workers;  // PDs for all: as many as all want

// Shared by all processes, apart from the ledger. `qps` counts what a worker surely holds: raised after its charge,
// lowered before it uncharges.
struct Board {
    std::atomic<std::int64_t> qps[workers];
    std::atomic<std::uint64_t> charges;
    std::atomic<std::uint64_t> denials;
    std::atomic<std::uint64_t> wrong_denials;  // of PDs, which always have room
    std::atomic<std::uint64_t> wrong_proofs;
    std::atomic<std::uint64_t> unproved;
};

Board* make_board() {
    void* memory = mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return new (memory) Board{};
}

double now() {
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

void work(Ledger& ledger, const Owner& owner, Board& board, int worker) {
    const auto device = *ledger.device_index("rxe0");
    const auto qp = Amounts{}.add(Resource::qp, 1);
    const auto pd = Amounts{}.add(Resource::pd, 1);
    Limits qp_limit;
    qp_limit.tenant = tight;
    Limits pd_limit;
    pd_limit.tenant = roomy;
    for (;;) {
        for (std::uint64_t i = 0; i < each; ++i) {
            const auto denial = ledger.charge(owner, device, pd, &pd_limit);
            if (denial) ++(denial->proved ? board.wrong_proofs : board.wrong_denials);
        }
        const auto denial = ledger.charge(owner, device, qp, &qp_limit);
        if (denial) {
            ++board.denials;
            board.unproved += !denial->proved;
        } else {
            ++board.charges;
            ++board.qps[worker];
            if (board.charges % 64 == 0) usleep(100);
            --board.qps[worker];
            ledger.uncharge(owner, device, qp);
        }
        for (std::uint64_t i = 0; i < each; ++i) ledger.uncharge(owner, device, pd);
    }
}

pid_t start_worker(const Scene& scene, Board& board, int worker) {
    return spawn([&] {
        auto ledger = Ledger::open(scene.path());
        auto owner = ledger->claim(identity_of_self());
        if (!owner) _exit(1);
        std::thread second([&] { work(*ledger, *owner, board, worker); });
        work(*ledger, *owner, board, worker);
    });
}

}  // namespace

void random_storm(double seconds, unsigned seed) {
    Scene scene;
    auto ledger = scene.open();
    ledger.data().header.slots_used = owner_slots;  // as if many had been there, so that who is denied watches for deaths
    Board& board = *make_board();
    std::mt19937 random(seed);
    std::vector<pid_t> pids;
    for (int i = 0; i < workers; ++i) pids.push_back(start_worker(scene, board, i));

    std::uint64_t kills = 0;
    std::uint64_t samples = 0;
    std::int64_t most = 0;
    for (const double end = now() + seconds; now() < end;) {
        usleep(static_cast<useconds_t>(random() % 3000));
        auto victim = random() % workers;
        if (victim >= workers - elders && random() % 256 != 0) victim %= workers - elders;
        if (random() % 4 == 0) {
            signal_process(pids[victim], SIGSTOP);
            usleep(static_cast<useconds_t>(random() % 2000));
            signal_process(pids[victim], SIGCONT);
        } else {
            reap_child(pids[victim]);
            board.qps[victim] = 0;
            ++kills;
            pids[victim] = start_worker(scene, board, static_cast<int>(victim));
        }
        std::int64_t sum = 0;
        for (const auto& held : board.qps) sum += held;
        most = std::max(most, sum);
        ++samples;
    }
    for (const auto pid : pids) reap_child(pid);

    const auto what = fmt::format("{} kills, {} charges, {} denials ({} unproved), seed {}", kills,
                                  board.charges.load(), board.denials.load(), board.unproved.load(), seed);
    check(static_cast<double>(kills) > seconds * 10 && board.charges > 1000, "a random storm: " + what);
    check(most <= static_cast<std::int64_t>(tight), fmt::format("the limit held at each of {} samples", samples),
          fmt::format("{} QPs held at once", most));
    // A wrong denial without a proof is possible where a repairing process gets no CPU for proof_wait_ns; it must stay
    // rare.
    check(board.wrong_proofs == 0 && board.wrong_denials * 100 <= kills,
          fmt::format("nobody was denied with room left ({} without a proof)", board.wrong_denials.load()),
          fmt::format("{} were with a proof", board.wrong_proofs.load()));
    std::string seen;
    check(accounting_is_true(ledger, seen), "after the storm the accounts are true", seen);
    check(has_room(ledger, tight, seen), "and the whole limit can be had", seen);
    munmap(&board, sizeof board);
}

}  // namespace storm
