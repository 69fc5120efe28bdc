// Several processes, some of which are killed in the middle of it, and their forked children.
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <vector>

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "phases.hpp"
#include "test/processes.hpp"

namespace oracle {
namespace {

constexpr unsigned process_count = 4;
constexpr unsigned steps_of_a_round = 25;

// What a process lets the comparer know, in memory that both share.
struct Shared {
    Tally expected;
    char wrong[512];
    char story[2048];
};

struct Process {
    pid_t pid = 0;
    int orders = -1, answers = -1;  // pipes; a byte is a round
    Shared* shared = nullptr;
};

// A child that opens the device for itself, and makes and destroys an object in its parent's context.
void fork_a_child(Pool& pool, const Accounting& accounting, ibv_device* device, Random& random) {
    const auto inherited = pool.pick(Kind::context, random);
    const auto seed = random.below(1000);
    const pid_t child = fork_child();
    if (child == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (inherited)
            if (ibv_pd* pd = ibv_alloc_pd(inherited->verbs)) ibv_dealloc_pd(pd);
        Pool own;
        Player player(own, accounting, device, seed, false);
        for (unsigned i = 0; i < 15; ++i) player.step();
        if (seed % 3 == 0) player.close_all();
        if (seed % 3 == 1) raise(SIGKILL);
        _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
}

[[noreturn]] void play(const Process& process, const Accounting& accounting, const Stage& stage, std::uint64_t seed) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    Pool pool;
    ibv_device* device = find_device(stage.device);
    Player player(pool, accounting, device, seed, false);
    char order = 0;
    while (read(process.orders, &order, 1) == 1 && order != 'q') {
        for (unsigned i = 0; i < steps_of_a_round && player.wrong().empty(); ++i) player.step();
        if (player.random().one_in(3)) fork_a_child(pool, accounting, device, player.random());
        process.shared->expected = pool.expected();
        fmt::format_to_n(process.shared->wrong, sizeof process.shared->wrong - 1, "{}", player.wrong());
        fmt::format_to_n(process.shared->story, sizeof process.shared->story - 1, "{}", player.story());
        if (write(process.answers, &order, 1) != 1) break;
    }
    _exit(0);
}

void start(Process& process, const Accounting& accounting, const Stage& stage, std::uint64_t seed) {
    int orders[2], answers[2];
    if (pipe(orders) != 0 || pipe(answers) != 0) std::exit(2);
    *process.shared = {};
    process.pid = fork_child();
    if (process.pid == 0) {
        close(orders[1]);
        close(answers[0]);
        process.orders = orders[0], process.answers = answers[1];
        play(process, accounting, stage, seed);
    }
    close(orders[0]);
    close(answers[1]);
    process.orders = orders[1], process.answers = answers[0];
}

void end(Process& process, int signal) {
    // Not by the end of the pipe, which the other processes have inherited.
    if (signal || write(process.orders, "q", 1) != 1) signal_process(process.pid, signal ? signal : SIGKILL);
    close(process.orders);
    close(process.answers);
    wait_for_child(process.pid);
    process.shared->expected = {};
}

Tally sum(const std::vector<Process>& all) {
    Tally result;
    for (const auto& process : all) result.add(process.shared->expected);
    return result;
}

// One round: all play, and one may be killed on the way and replaced.
void round(std::vector<Process>& all, Random& random, const Accounting& accounting, const Stage& stage) {
    for (auto& process : all)
        if (write(process.orders, "g", 1) != 1) std::exit(2);
    const bool kills = random.one_in(2);
    auto& victim = all[random.below(all.size())];
    const timespec pause{0, static_cast<long>(random.below(100)) * 1'000'000};
    nanosleep(&pause, nullptr);
    if (kills) {
        end(victim, SIGKILL);
        start(victim, accounting, stage, random.below(1 << 30));
    }
    char answer;
    for (auto& process : all)
        if (!kills || &process != &victim)
            if (read(process.answers, &answer, 1) != 1) fmt::print("# a process ended by itself\n");
}

}  // namespace

void processes(const Stage& stage, Accounting& accounting) {
    Random random(stage.seed);
    auto* shared = static_cast<Shared*>(
        mmap(nullptr, process_count * sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    std::vector<Process> all(process_count);
    for (unsigned i = 0; i < process_count; ++i) {
        all[i].shared = shared + i;
        start(all[i], accounting, stage, stage.seed + i);
    }
    std::string wrong, story;
    const unsigned rounds = stage.steps / (process_count * steps_of_a_round) + 1;
    for (unsigned i = 0; wrong.empty() && i < rounds; ++i) {
        if (i % 3 == 2) accounting.limit_at_random(random, sum(all));
        round(all, random, accounting, stage);
        for (const auto& process : all)
            if (process.shared->wrong[0]) wrong = process.shared->wrong, story = process.shared->story;
        if (wrong.empty()) wrong = accounting.lasting_disagreement(sum(all));
    }
    accounting.lift_limits();
    for (auto& process : all) end(process, random.one_in(2) ? SIGKILL : 0);
    if (wrong.empty()) wrong = accounting.lasting_disagreement({});
    munmap(shared, process_count * sizeof(Shared));
    report(fmt::format("{} processes, their children and their deaths: the accounts agree whenever they rest",
                       process_count),
           wrong, story);
}

}  // namespace oracle
