// One thread, compared after every call; with and without limits that change at random.
#include <cstdio>

#include <fmt/core.h>

#include "phases.hpp"

namespace oracle {
namespace {

// That nothing of this was idle, and how it ended, for people.
std::string idle(const std::map<std::string, Outcomes>& outcomes, bool with_limits) {
    Outcomes sum;
    std::string text;
    for (const auto& [name, outcome] : outcomes) {
        sum.add(outcome);
        text += fmt::format(" {} {}/{}/{}", name, outcome.done, outcome.denied, outcome.refused);
    }
    fmt::print("# done/denied/refused:{}\n", text);
    if (sum.done == 0 || sum.refused == 0) return "nothing was done, or nothing refused";
    return with_limits && sum.denied == 0 ? "nothing was denied" : "";
}

}  // namespace

void single(const Stage& stage, Accounting& accounting, bool with_limits) {
    Pool pool;
    Player player(pool, accounting, find_device(stage.device), stage.seed, true);
    std::string wrong;
    unsigned step = 0;
    for (; wrong.empty() && step < stage.steps; ++step) {
        if (with_limits && step % 25 == 0) accounting.limit_at_random(player.random(), pool.expected());
        player.step();
        wrong = player.wrong();
        if (wrong.empty()) wrong = accounting.disagreement(pool.expected());
    }
    accounting.lift_limits();
    player.close_all();
    if (wrong.empty()) wrong = accounting.disagreement(pool.expected());
    const auto name = fmt::format("{} calls of one thread{}: the accounts agree after each", stage.steps,
                                  with_limits ? " under random limits" : "");
    report(name, wrong.empty() ? wrong : fmt::format("after step {}: {}", step, wrong), player.story());
    if (wrong.empty()) report("these calls were of every outcome", idle(player.outcomes(), with_limits));
}

}  // namespace oracle
