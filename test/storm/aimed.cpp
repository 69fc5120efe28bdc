// A process kills or stops itself at each failpoint of each operation, one after the other.
#include <fmt/core.h>
#include <unistd.h>

#include "shm/atomic.hpp"
#include "shm/ledger/steps.hpp"
#include "storm.hpp"

namespace storm {
namespace {

constexpr std::uint64_t limit = 4;

// As the provider charges: the PD finds room, and goes back when the QPs do not.
bool charge_by_parts(Ledger& ledger, const Owner& owner, std::uint32_t device, std::uint64_t qps) {
    const auto limits = [](Resource resource) -> const Limits& {
        static const Limits none;
        return resource == Resource::qp ? *limits_of(limit) : none;
    };
    return ledger.charge_parts(owner, device, limits, Part<Resource::pd>{1}, Part<Resource::qp>{qps});
}

// One of everything: claim, charge, a denied charge, an uncharge, the same by parts, an orderly end.
void whole_life(const std::string& path) {
    auto ledger = Ledger::open(path);
    auto owner = ledger->claim(identity_of_self());
    if (!owner) _exit(1);
    const auto device = *ledger->device_index("rxe0");
    if (ledger->charge(*owner, device, two_resources(2), limits_of(limit))) _exit(1);
    if (ledger->charge(*owner, device, two_resources(1), limits_of(limit))) _exit(1);
    ledger->charge(*owner, device, two_resources(2), limits_of(limit));
    ledger->uncharge(*owner, device, two_resources(1));
    if (!charge_by_parts(*ledger, *owner, device, 1) || charge_by_parts(*ledger, *owner, device, 2)) _exit(1);
    if (ledger->usage(owner->slot(), device, Resource::pd) != 1) _exit(1);
    ledger->uncharge_parts(*owner, device, Part<Resource::pd>{1}, Part<Resource::qp>{1});
    ledger->retire(*owner);
}

// Leaves usage and a leak behind: dies between gate and slot, on its first charge's second resource.
void messy_death(const std::string& path) {
    auto ledger = Ledger::open(path);
    auto owner = ledger->claim(identity_of_self());
    if (!owner) _exit(1);
    const auto device = *ledger->device_index("rxe0");
    if (ledger->charge(*owner, device, two_resources(1), limits_of(limit))) _exit(1);
    aim(SIGKILL, 4);  // begin, raise_gate, raise_slot, raise_gate
    ledger->charge(*owner, device, two_resources(1), limits_of(limit));
}

// Repairs: must reap the dead and correct a gate to be admitted.
void repair(const std::string& path) {
    auto ledger = Ledger::open(path);
    auto owner = ledger->claim(identity_of_self());
    if (!owner) _exit(1);
    if (ledger->charge(*owner, *ledger->device_index("rxe0"), two_resources(limit), limits_of(limit))) _exit(1);
    ledger->retire(*owner);
}

// Must come to an end while another process is stopped, whatever the answers are.
void bystander(const std::string& path) {
    auto ledger = Ledger::open(path);
    auto owner = ledger->claim(identity_of_self());
    if (!owner) _exit(1);
    const auto device = *ledger->device_index("rxe0");
    if (!ledger->charge(*owner, device, two_resources(1), limits_of(limit)))
        ledger->uncharge(*owner, device, two_resources(1));
    ledger->reap();
}

struct Count {
    int ended = 0;
    std::string wrong;
};

// Kills or stops `life` at its 1st, 2nd … failpoint, until it comes to its end by itself.
Count at_each_failpoint(int signal, const std::function<void(const std::string&)>& before,
                        const std::function<void(const std::string&)>& life, bool fresh_scene) {
    Count count;
    Scene shared;
    for (std::uint64_t nth = 1; count.wrong.empty(); ++nth) {
        std::optional<Scene> own;
        if (fresh_scene) own.emplace();
        const Scene& scene = own ? *own : shared;
        auto ledger = scene.open();
        if (before) await_child(spawn([&] { before(scene.path()); }), 5);
        const pid_t child = spawn([&] {
            aim(signal, nth);
            life(scene.path());
        });
        const bool stopped = signal == SIGSTOP && await_stop(child);
        if (stopped)
            if (const int other = await_child(spawn([&] { bystander(scene.path()); }), 5); other != 0)
                count.wrong = fmt::format("failpoint {}: another process ended with {}", nth, other);
        const int outcome = signal == SIGSTOP ? (stopped ? reap_child(child) : 0) : await_child(child, 5);
        std::string seen;
        if (outcome == 0 && !stopped) return count;
        if (outcome != SIGKILL) count.wrong = fmt::format("failpoint {}: ended with {}", nth, outcome);
        if (count.wrong.empty() && (!has_room(ledger, limit, seen) || !accounting_is_true(ledger, seen)))
            count.wrong = fmt::format("failpoint {}: {}", nth, seen);
        ++count.ended;
    }
    return count;
}

void report(const char* what, const Count& count, int fewest) {
    check(count.wrong.empty() && count.ended >= fewest, fmt::format("{} ({} failpoints)", what, count.ended),
          count.wrong.empty() ? "too few failpoints" : count.wrong);
}

// Between a claimer's look at a slot and its lock, another process may claim the slot, charge and die.
// The claimer must not pass for that owner. Found by the model, MUTANT_CLAIM_AS_OWNER.
void claimer_of_a_dead_slot() {
    Scene scene;
    auto ledger = scene.open();
    const auto device = *ledger.device_index("rxe0");
    await_child(spawn([&] {
                    const auto owner = ledger.claim(identity_of_self());
                    if (!owner || ledger.charge(*owner, device, two_resources(limit), limits_of(limit))) _exit(1);
                }),
                5);
    auto& state = ledger.data().states[0];
    store(state, SlotState::free);
    const pid_t claimer = spawn([&] {
        aim(SIGSTOP, 1);  // claim_lock
        if (!ledger.claim(identity_of_self())) _exit(1);
    });
    const bool stopped = await_stop(claimer);
    store(state, SlotState::live);

    const auto owner = ledger.claim(identity_of_self());
    const auto denial = ledger.charge(*owner, device, two_resources(1), limits_of(limit));
    check(stopped && denial && !denial->proved,
          "usage of the dead denies nobody with a proof while their slot is claimed",
          !stopped  ? "the claimer did not stop"
          : !denial ? "charged"
                    : "denied with a proof");
    reap_child(claimer);
    check(!ledger.charge(*owner, device, two_resources(limit), limits_of(limit)), "and is back when the claimer dies");
}

}  // namespace

void aimed_storm() {
    report("killed at each failpoint of a whole life, the accounts are true",
           at_each_failpoint(SIGKILL, nullptr, whole_life, false), 30);
    report("stopped at each failpoint of a whole life, others go on",
           at_each_failpoint(SIGSTOP, nullptr, whole_life, false), 30);
    report("killed at each failpoint of a repair, the next one completes it",
           at_each_failpoint(SIGKILL, messy_death, repair, true), 20);
    report("stopped at each failpoint of a repair, others go on", at_each_failpoint(SIGSTOP, messy_death, repair, true),
           20);
    claimer_of_a_dead_slot();
}

}  // namespace storm
