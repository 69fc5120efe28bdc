// reaping AT_ONCE DEATHS SEED PROGRAM ARG...: a kill storm, and how long the dead stay in the system's ledger.
//
// AT_ONCE processes of PROGRAM at a time; when each has said "waiting" and uses something, all are killed with -9, in
// random order at random moments, until there were so many DEATHS. Prints the times from a process' end, which a busy
// kernel may reach long after the kill, until the ledger had nothing of it, in microseconds: median, 99th percentile, most.
// Looks without repairing anything. Fails when PROGRAM does, or when something is still there after half a minute.
#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "test/processes.hpp"

namespace {

using namespace rdmaquota;
using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;

constexpr unsigned round_us = 1'000'000;        // of the sidecar: the first is killed at any moment of it
constexpr unsigned longest_pause_us = 20'000;  // between two kills, every other of which has none
constexpr std::chrono::seconds patience{300};

[[noreturn]] void give_up(const std::string& why) {
    std::fprintf(stderr, "reaping: %s\n", why.c_str());
    std::exit(1);
}

struct Victim {
    pid_t pid = 0;
    int keys = -1, words = -1;  // its standard input and output
    std::uint32_t slot = 0;
    Clock::time_point kill_at{}, ended_at{};
    bool killed = false, ended = false, back = false;
};
using Victims = std::vector<Victim>;

Victim start(char** command) {
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) give_up("no pipes");
    Victim victim;
    victim.pid = fork_child();
    if (victim.pid == 0) {
        dup2(in[0], STDIN_FILENO);
        dup2(out[1], STDOUT_FILENO);
        execv(command[0], command);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    victim.keys = in[1], victim.words = out[0];
    return victim;
}

void await_waiting(const Victim& victim) {
    std::string said;
    char bytes[256];
    while (said.find("waiting\n") == said.npos) {
        const auto got = read(victim.words, bytes, sizeof bytes);
        if (got <= 0) give_up("the program ended: " + said);
        said.append(bytes, static_cast<std::size_t>(got));
    }
}

void find_slot(const Ledger& ledger, Victim& victim) {
    for (const auto& owner : ledger.owners())
        if (owner.identity.pid == static_cast<std::uint32_t>(victim.pid)) {
            victim.slot = owner.slot;
            return;
        }
    give_up("a process is not in the ledger");
}

// By the slot itself, since a listing leaves out slots that are just being emptied.
bool uses_something(const Ledger& ledger, const Victim& victim) {
    bool any = false;
    for (const auto& [device, identity, name] : ledger.devices())
        for (const auto& row : resource_table) any = any || ledger.usage(victim.slot, device, row.id) != 0;
    if (!any) return false;
    const auto owners = ledger.owners();
    return std::none_of(owners.begin(), owners.end(), [&victim](const OwnerView& owner) {
        return owner.slot == victim.slot && owner.identity.pid != static_cast<std::uint32_t>(victim.pid);
    });
}

void plan(Victims& victims, std::mt19937_64& random) {
    std::shuffle(victims.begin(), victims.end(), random);
    auto when = Clock::now() + microseconds(random() % round_us);
    for (auto& victim : victims) {
        victim.kill_at = when;
        if (random() % 2 == 0) when += microseconds(random() % longest_pause_us);
    }
}

// Leaves it a zombie, so that its number stays its own.
bool has_ended(const Victim& victim) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(victim.pid), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == victim.pid;
}

void look_after(Victim& victim) {
    if (!victim.killed && Clock::now() >= victim.kill_at) victim.killed = signal_process(victim.pid, SIGKILL);
    if (victim.killed && !victim.ended && has_ended(victim)) {
        victim.ended = true;
        victim.ended_at = Clock::now();
    }
}

void kill_all(const Ledger& ledger, Victims& victims, std::vector<microseconds>& times) {
    const auto end = Clock::now() + patience;
    for (auto left = victims.size(); left != 0; usleep(100)) {
        if (Clock::now() > end) give_up("what a killed process used is still in the ledger");
        for (auto& victim : victims) {
            look_after(victim);
            if (!victim.ended || victim.back || uses_something(ledger, victim)) continue;
            times.push_back(std::chrono::duration_cast<microseconds>(Clock::now() - victim.ended_at));
            victim.back = true;
            --left;
        }
    }
}

void bury(const Victim& victim) {
    waitpid(victim.pid, nullptr, 0);
    close(victim.keys);
    close(victim.words);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc < 5) give_up("usage: reaping AT_ONCE DEATHS SEED PROGRAM ARG...");
    const auto ledger = Ledger::open(ledger_path(here_path(system_directory)));
    if (!ledger) give_up(ledger.error());
    std::mt19937_64 random(std::strtoull(argv[3], nullptr, 10));
    std::vector<microseconds> times;
    while (times.size() < std::strtoull(argv[2], nullptr, 10)) {
        Victims victims(std::strtoull(argv[1], nullptr, 10));
        for (auto& victim : victims) victim = start(argv + 4);
        for (auto& victim : victims) await_waiting(victim);
        for (auto& victim : victims) {
            find_slot(ledger.value(), victim);
            if (!uses_something(ledger.value(), victim)) give_up("a process uses nothing");
        }
        plan(victims, random);
        kill_all(ledger.value(), victims, times);
        for (const auto& victim : victims) bury(victim);
    }
    std::sort(times.begin(), times.end());
    const auto part = [&times](std::size_t percent) {
        return static_cast<long long>(times[(times.size() - 1) * percent / 100].count());
    };
    std::printf("%lld %lld %lld\n", part(50), part(99), part(100));
}
