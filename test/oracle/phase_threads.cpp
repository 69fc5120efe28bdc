// Many threads of one process: what one has made, another changes and destroys.
#include <atomic>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "phases.hpp"

namespace oracle {
namespace {

constexpr unsigned thread_count = 6;
constexpr unsigned steps_of_a_round = 25;

void round(std::vector<Player>& players) {
    std::vector<std::thread> running;
    for (auto& player : players)
        running.emplace_back([&player] {
            for (unsigned i = 0; i < steps_of_a_round && player.wrong().empty(); ++i) player.step();
        });
    for (auto& thread : running) thread.join();
}

}  // namespace

void threads(const Stage& stage, Accounting& accounting) {
    accounting.expect_ended_threads();
    Pool pool;
    std::vector<Player> players;
    for (unsigned i = 0; i < thread_count; ++i)
        players.emplace_back(pool, accounting, find_device(stage.device), stage.seed + i, false);
    Random random(stage.seed);
    std::string wrong;
    const unsigned rounds = stage.steps / (thread_count * steps_of_a_round) + 1;
    for (unsigned i = 0; wrong.empty() && i < rounds; ++i) {
        if (i % 3 == 2) accounting.limit_at_random(random, pool.expected());
        round(players);
        for (const auto& player : players)
            if (wrong.empty()) wrong = player.wrong();
        if (wrong.empty()) wrong = accounting.disagreement(pool.expected());
    }
    accounting.lift_limits();
    players.front().close_all();
    if (wrong.empty()) wrong = accounting.disagreement(pool.expected());
    report(fmt::format("{} threads with the same objects: the accounts agree whenever they rest", thread_count), wrong,
           players.front().story());
}

// Every change beyond the limit is denied, also while another thread changes the same object.
void resizers(const Stage& stage, Accounting& accounting) {
    ibv_context* context = ibv_open_device(find_device(stage.device));
    ibv_cq* cq = context ? ibv_create_cq(context, 10, nullptr, nullptr, 0) : nullptr;
    if (!cq) return report("a CQ for two threads", "it cannot be created");
    accounting.set_tenant_limit(Resource::cqe, 100);
    std::atomic<unsigned> allowed{0}, undenied{0};
    std::vector<std::thread> running;
    for (unsigned i = 0; i < 4; ++i)
        running.emplace_back([&, i] {
            for (unsigned k = 0; k < 150; ++k)
                if (i % 2 == 0)
                    allowed += ibv_resize_cq(cq, 5 + static_cast<int>(k % 90)) == 0;
                else
                    undenied += ibv_resize_cq(cq, 500) != EDQUOT;
        });
    for (auto& thread : running) thread.join();
    report("a CQ that four threads resize never exceeds the limit",
           undenied == 0 && allowed > 0
               ? ""
               : fmt::format("{} of 300 were not denied; {} within it", undenied.load(), allowed.load()));
    const bool resized = ibv_resize_cq(cq, 42) == 0;
    report("and costs what it was last resized to", resized ? accounting.disagreement(Tally{}
                                                                                          .with(Resource::hca_handle)
                                                                                          .with(Resource::cq)
                                                                                          .with(Resource::hca_object)
                                                                                          .with(Resource::cqe, 42))
                                                            : "it cannot be resized");
    ibv_destroy_cq(cq);
    ibv_close_device(context);
    accounting.lift_limits();
    report("and leaves nothing behind", accounting.disagreement({}));
}

}  // namespace oracle
