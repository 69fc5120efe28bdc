// cluster_sim [--seeds N] [--first SEED] [--verbose]: the real coordinator, agent and keeper of ceilings in one process, under random faults.
// After each step the oracle judges; at the end of a seed all faults end, and who wants everything must get what is not a floor.
// Prints what it did; the last line is 'N passed, N failed'.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "test/cluster/oracle.hpp"

using namespace rdmaquota;
using namespace rdmaquota::cluster;
using namespace rdmaquota::cluster::sim;
using namespace std::chrono_literals;

namespace {

class Scene {
public:
    Scene(std::uint64_t seed, bool verbose)
        : cluster_(seed, settings(seed, verbose)), random_(cluster_.events.random), oracle_(cluster_), verbose_(verbose) {}

    // The first violation; empty: none.
    std::string run() {
        begin();
        const auto end = cluster_.events.now() + 20s;
        for (auto problem = run_until(end, true);; problem = run_until(cluster_.events.now() + 60s, false)) {
            if (!problem.empty() || healed_) return problem.empty() ? lacking() : problem;
            heal();
        }
    }
    std::uint64_t steps() const { return oracle_.checks; }
    std::uint64_t raises = 0;

private:
    static Settings settings(std::uint64_t seed, bool verbose) {
        Settings settings;
        settings.coordinators = 1 + seed % 3;
        settings.store_faults = seed % 4 == 0 ? 0 : 12;
        settings.duplicates = 5;
        settings.sidecar_kills = seed % 3 == 0 ? 0 : 40;
        settings.hop = seed % 5 == 0 ? Time(200ms) : Time(3ms);
        settings.verbose = verbose;
        return settings;
    }

    ClusterRecord desired() const {
        ClusterRecord record;
        for (const auto& [name, limit] : limits_) record.pools.push_back({0, name, limit});
        for (std::size_t i = 0; i < roster_; ++i) {
            auto& node = record.roster[fmt::format("n{}", i)];
            node.weight = i == 0 ? 300 : 100;
            if (floors_)
                for (const auto& [name, limit] : limits_) node.floors[name] = std::min<std::uint64_t>(1, limit / roster_);
        }
        return record;
    }
    void apply() {
        if (auto* leader = cluster_.leader())
            leader->apply(desired(), [this](const Result<void>& done) { say("apply", done ? "done" : done.error()); });
    }
    void say(const char* what, const std::string& text = {}) const {
        if (verbose_) std::printf("%8.3f %s %s\n", static_cast<double>(cluster_.events.time().count()) / 1e9, what, text.c_str());
    }

    void begin() {
        roster_ = 2 + random_.below(3);
        floors_ = random_.one_in(2);
        limits_[{"physics", Resource::qp}] = 4 + random_.below(20);
        if (random_.one_in(2)) limits_[{"physics/atlas", Resource::mr_bytes}] = 3 + random_.below(6);
        for (std::size_t i = 0; i < roster_; ++i) cluster_.add_host(fmt::format("n{}", i), fmt::format("hw{}", i));
        chaos();
    }

    std::string run_until(Time end, bool faults) {
        faults_ = faults;
        while (cluster_.events.step(end))
            if (const auto problem = oracle_.broken(); !problem.empty()) return problem;
        return {};
    }

    void chaos() {
        for (auto& host : cluster_.hosts) {
            host.node.run_programs();
            if (!random_.one_in(3)) continue;
            for (const auto& [pool, limit] : limits_) host.node.places[pool].goal = random_.one_in(3) ? 0 : random_.below(limit + 2);
        }
        if (const auto* leader = cluster_.leader(); leader != nullptr && leader->books().record() != applied()) apply();
        if (faults_ && random_.one_in(3)) fault();
        cluster_.events.after(faults_ ? 150ms : 400ms, [this] { chaos(); });
    }
    // What stands in etcd, as desired() has it.
    ClusterRecord applied() const {
        auto record = desired();
        const auto& present = cluster_.etcd.keys.at("cluster").value;
        const auto parsed = ClusterRecord::parse(present);
        for (auto& pool : record.pools)
            if (const auto* found = parsed->find(pool.name)) pool.id = found->id;
        for (auto& [name, node] : record.roster)
            if (const auto found = parsed->roster.find(name); found != parsed->roster.end()) node.since_epoch = found->second.since_epoch;
        return record;
    }

    Cluster::Host& any_host() { return cluster_.hosts[random_.below(cluster_.hosts.size())]; }
    Cluster::Process& any_process() { return *cluster_.processes[random_.below(cluster_.processes.size())]; }

    void fault() {
        switch (random_.below(15)) {
            case 0: {  // a coordinator dies, and starts again
                auto& process = any_process();
                if (!process.coordinator) return;
                say("coordinator dies", fmt::format("c{}", process.number));
                process.die();
                return cluster_.events.after(cluster_.events.delay(2s), [&process] {
                    if (!process.coordinator) process.start();
                });
            }
            case 1: {  // one is stopped, and goes on as deposed
                auto& process = any_process();
                if (!process.coordinator) return;
                say("coordinator is stopped", fmt::format("c{}", process.number));
                process.stopped_until = process.store->stopped_until = cluster_.events.now() + cluster_.events.delay(4s);
                return;
            }
            case 2: {  // one does not reach etcd
                auto& process = any_process();
                if (process.store) process.store->cut = !process.store->cut;
                return;
            }
            case 3:
                cluster_.etcd.up = !random_.one_in(4);
                return;
            case 4:
            case 5: {
                auto& host = any_host();
                if (!host.agent) return;
                say("agent dies", host.node.name);
                host.stop_agent();
                return cluster_.events.after(cluster_.events.delay(1s), [&host] {
                    if (!host.agent) host.start_agent();
                });
            }
            case 6:
            case 7: {  // a node is cut off, or back
                auto& host = any_host();
                host.cut = !host.cut;
                say(host.cut ? "cut off" : "back", host.node.name);
                return host.cut ? cluster_.break_stream(host.stream) : void();
            }
            case 8:
            case 9: {
                auto& host = any_host();
                if (!host.node.alive) return;
                say("node dies", host.node.name);
                host.node.die();
                if (host.agent) host.stop_agent();
                return cluster_.events.after(cluster_.events.delay(3s), [this, &host] {
                    if (host.node.alive) return;
                    host.node.boot_up();
                    say("node boots", host.node.name + " " + host.node.boot);
                    if (!host.agent) host.start_agent();
                });
            }
            case 10: {  // limits change
                for (auto& [pool, limit] : limits_)
                    if (random_.one_in(2)) limit = 1 + random_.below(20);
                return say("limits change");
            }
            case 11: {  // a pool is removed, or added again
                const PoolName pool{"physics/atlas", Resource::mr_bytes};
                if (limits_.erase(pool) == 0) limits_[pool] = 2 + random_.below(6);
                return say("pool removed or added");
            }
            case 12:
                return forget();
            case 13:
                return restore();
            default: {
                if (random_.one_in(3) && !cloned_) {
                    cloned_ = true;
                    say("clone of n0");
                    cluster_.add_host("n0", "hw-of-a-clone");
                } else if (roster_ > 2 && random_.one_in(2)) {
                    --roster_;
                } else if (roster_ < cluster_.hosts.size() - (cloned_ ? 1 : 0)) {
                    ++roster_;
                }
            }
        }
    }

    void forget() {
        auto* leader = cluster_.leader();
        if (leader == nullptr) return;
        const auto number = random_.below(cluster_.hosts.size());
        auto& host = cluster_.hosts[number];
        const auto found = leader->books().nodes().find(host.node.name);
        if (found == leader->books().nodes().end() || found->second.connected) return;
        const bool is_clone = host.node.hardware == "hw-of-a-clone";
        if (is_clone) return;
        say("forget", host.node.name + (host.node.alive ? " alive" : ""));
        for (std::size_t i = 0; i < cluster_.hosts.size(); ++i)  // also a clone that has the name by now
            if (cluster_.hosts[i].node.name == host.node.name) oracle_.will_forget(i);
        leader->forget(host.node.name, found->second.key ? found->second.key->number : 0,
                       [this](const Result<void>& done) { say("forgotten", done ? "" : done.error()); });
    }

    void restore() {
        if (!backup_) {
            const auto first = cluster_.etcd.keys.lower_bound("node/");
            if (first == cluster_.etcd.keys.end() || !first->first.starts_with("node/")) return;  // nothing to lose
            backup_ = cluster_.etcd.backup();
            return say("backup");
        }
        say("restore");
        for (auto& process : cluster_.processes)
            if (process->coordinator) process->die();
        cluster_.etcd.restore(*backup_);
        oracle_.restored();
        for (auto& process : cluster_.processes)
            cluster_.events.after(cluster_.events.delay(300ms), [&process = *process] {
                if (!process.coordinator) process.start();
            });
    }

    void heal() {
        say("faults end");
        healed_ = true;
        cluster_.etcd.up = true;
        for (auto& process : cluster_.processes) {
            if (!process->coordinator) process->start();
            process->store->cut = false;
            process->store->faults = 0;
        }
        roster_ = cluster_.hosts.size() - (cloned_ ? 1 : 0);
        for (auto& host : cluster_.hosts) {
            host.cut = false;
            host.node.kills = 0;
            if (!host.node.alive) host.node.boot_up();
            if (!host.agent) host.start_agent();
        }
    }

    // I4: the others use nothing and want nothing.
    std::string lacking() {
        auto* leader = cluster_.leader();
        if (leader == nullptr) return "I4: nobody leads";
        if (cloned_) return {};  // the name may be the clone's
        auto& greedy = cluster_.hosts[random_.below(roster_)];
        for (auto& host : cluster_.hosts)
            for (const auto& [pool, limit] : limits_) host.node.places[pool].goal = &host == &greedy ? limit : 0;
        limits_frozen_ = true;
        const auto end = cluster_.events.now() + 30s;
        while (cluster_.events.step(end)) {
            for (auto& host : cluster_.hosts)
                for (auto& [pool, place] : host.node.places) place.goal = &host == &greedy ? (limits_.contains(pool) ? limits_.at(pool) : 0) : 0;
            if (const auto problem = oracle_.broken(); !problem.empty()) return problem;
        }
        const auto record = desired();
        for (const auto& [pool, limit] : limits_) {
            std::uint64_t floors = 0;
            for (const auto& [name, node] : record.roster)
                if (name != greedy.node.name) floors += record.floor(name, pool);
            if (greedy.node.places[pool].in_force < limit - std::min(limit, floors))
                return fmt::format("I4: {} has {} of {} {} though all others want nothing", greedy.node.name, greedy.node.places[pool].in_force,
                                   limit, info(pool.resource).name);
        }
        return {};
    }

    Cluster cluster_;
    Random& random_;
    Oracle oracle_;
    bool verbose_, faults_ = true, healed_ = false, cloned_ = false, floors_ = false, limits_frozen_ = false;
    std::size_t roster_ = 0;
    std::map<PoolName, std::uint64_t> limits_;
    std::optional<Etcd::Backup> backup_;
};

}  // namespace

int main(int argc, char** argv) {
    std::uint64_t seeds = 1000, first = 1, passed = 0, failed = 0, steps = 0;
    bool verbose = false;
    for (int i = 1; i < argc; ++i) {
        if (std::strcmp(argv[i], "--verbose") == 0) verbose = true;
        else if (std::strcmp(argv[i], "--seeds") == 0 && i + 1 < argc) seeds = std::strtoull(argv[++i], nullptr, 10);
        else if (std::strcmp(argv[i], "--first") == 0 && i + 1 < argc) first = std::strtoull(argv[++i], nullptr, 10);
    }
    for (auto seed = first; seed < first + seeds; ++seed) {
        Scene scene(seed, verbose);
        const auto problem = scene.run();
        steps += scene.steps();
        if (problem.empty()) ++passed;
        else if (++failed <= 5) std::printf("not ok - seed %llu: %s\n", static_cast<unsigned long long>(seed), problem.c_str());
    }
    std::printf("# %llu steps\n%llu passed, %llu failed\n", static_cast<unsigned long long>(steps), static_cast<unsigned long long>(passed),
                static_cast<unsigned long long>(failed));
    return failed != 0;
}
