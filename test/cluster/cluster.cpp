#include "test/cluster/cluster.hpp"

#include <cstdio>

namespace rdmaquota::cluster::sim {

using namespace std::chrono_literals;

Cluster::Cluster(std::uint64_t seed, Settings settings) : events(seed), settings_(settings) {
    for (std::size_t i = 0; i < settings.coordinators; ++i) {
        processes.push_back(std::make_unique<Process>(*this, i));
        processes.back()->start();
    }
}

Cluster::Host& Cluster::add_host(const std::string& name, const std::string& hardware) {
    auto& host = hosts.emplace_back(*this, hosts.size(), name, hardware);
    host.next = events.random.below(processes.size());
    host.node.kills = settings_.sidecar_kills;
    host.start_agent();
    return host;
}

Coordinator* Cluster::leader() {
    const auto found = etcd.keys.find("leader");
    for (auto& process : processes)
        if (process->coordinator && process->coordinator->leads() && found != etcd.keys.end() &&
            found->second.value == fmt::format("c{}", process->number))
            return process->coordinator.get();
    return nullptr;
}

void Cluster::Process::start() {
    ++generation;
    store = std::make_unique<SimStore>(cluster.events, cluster.etcd, cluster.settings_.store_faults);
    const auto name = fmt::format("c{}", number);
    const auto note = [this, name](const std::string& text) {
        if (cluster.settings_.verbose) std::printf("%8.3f %s: %s\n", static_cast<double>(cluster.events.now().count()) / 1e9, name.c_str(), text.c_str());
    };
    coordinator = std::make_unique<Coordinator>(
        Coordinator::World{cluster.events, *store, *this, [this] { return static_cast<std::uint32_t>(cluster.events.random.next()); }, note}, name);
    cluster.tick(*this, generation);
}

void Cluster::Process::die() {
    ++generation;
    coordinator.reset();
    store.reset();
    stopped_until = {};
    for (auto& [id, stream] : cluster.streams_)
        if (stream.process == number && stream.open_at_coordinator) {
            stream.open_at_coordinator = false;
            cluster.close_at_node(id, cluster.in_order(stream.last_to_node));
        }
}

void Cluster::tick(Process& process, std::uint64_t generation) {
    if (process.generation != generation) return;
    if (process.stopped_until <= events.now()) process.coordinator->tick();
    events.after(100ms, [this, &process, generation] { tick(process, generation); });
}

void Cluster::at(Process& process, Time delay, std::function<void(Coordinator&)> what) {
    events.after(delay, [this, &process, generation = process.generation, what = std::move(what)] {
        if (process.generation != generation) return;
        if (process.stopped_until > events.now()) return at(process, process.stopped_until - events.now(), what);
        what(*process.coordinator);
        // As the program does: after each word it looks what is to be written.
        process.coordinator->tick();
    });
}

void Cluster::Process::send(StreamId id, const ToNode& word) {
    auto& stream = cluster.streams_.at(id);
    ++cluster.words;
    cluster.word_bytes += 40 + word.delivery.ceilings.size() * 12;
    auto& host = cluster.hosts[stream.host];
    if (cluster.settings_.duplicates != 0 && cluster.events.random.one_in(cluster.settings_.duplicates))
        cluster.events.after(Time(static_cast<std::int64_t>(cluster.events.random.below(20'000'000'000))),
                             [&host, delivery = word.delivery] { (void)host.node.take(&delivery); });
    cluster.events.after(cluster.in_order(stream.last_to_node), [this, id, word, &host] {
        const auto found = cluster.streams_.find(id);
        if (found == cluster.streams_.end() || !found->second.open_at_node || host.generation != found->second.agent_generation) return;
        host.agent->received(word);
        host.tick();
    });
}

void Cluster::Process::close(StreamId id, const std::string&) {
    auto& stream = cluster.streams_.at(id);
    stream.open_at_coordinator = false;
    cluster.close_at_node(id, cluster.in_order(stream.last_to_node));
}

void Cluster::close_at_node(StreamId id, Time delay) {
    events.after(delay, [this, id] {
        const auto found = streams_.find(id);
        if (found == streams_.end() || !found->second.open_at_node) return;
        found->second.open_at_node = false;
        auto& host = hosts[found->second.host];
        if (host.generation != found->second.agent_generation || host.stream != id) return;
        host.agent->disconnected("closed");
        host.tick();
    });
}

// What is under way to the coordinator still arrives.
void Cluster::break_stream(StreamId id) {
    const auto found = streams_.find(id);
    if (found == streams_.end()) return;
    auto& stream = found->second;
    close_at_node(id, 0ns);
    if (!stream.open_at_coordinator) return;
    auto& process = *processes[stream.process];
    if (process.generation != stream.process_generation) return;
    stream.last_to_coordinator += Time(static_cast<std::int64_t>(events.random.below(3'000'000'000)));
    at(process, in_order(stream.last_to_coordinator), [this, id](Coordinator& coordinator) {
        auto& closed = streams_.at(id);
        if (std::exchange(closed.open_at_coordinator, false)) coordinator.closed(id);
    });
}

void Cluster::Host::start_agent() {
    ++generation;
    agent = std::make_unique<Agent>(Agent::World{cluster.events, node, *this, [this] { return static_cast<std::uint32_t>(cluster.events.random.next()); }});
    ticks_at = {};
    tick();
}

void Cluster::Host::stop_agent() {
    ++generation;
    agent.reset();
    cluster.break_stream(stream);
    stream = 0;
}

void Cluster::Host::tick() {
    if (!agent) return;
    agent->tick();
    const auto next_time = std::max(agent->next_tick(), cluster.events.now() + Time(1ms));
    if (ticks_at > cluster.events.now() && ticks_at <= next_time) return;
    ticks_at = next_time;
    cluster.events.after(next_time - cluster.events.now(), [this, now = generation, next_time] {
        if (generation == now && ticks_at == next_time) tick();
    });
}

void Cluster::Host::connect() {
    auto& process = *cluster.processes[next++ % cluster.processes.size()];
    const auto id = stream = ++cluster.last_stream_;
    auto& made = cluster.streams_[id] = {process.number, number, process.generation, generation};
    if (!process.coordinator || cut) {
        made.open_at_coordinator = false;
        return cluster.close_at_node(id, cluster.in_order(made.last_to_node));
    }
    cluster.at(process, cluster.in_order(made.last_to_coordinator), [id, name = node.name](Coordinator& coordinator) { coordinator.opened(id, name); });
}

void Cluster::Host::send(const FromNode& word) {
    auto& to = cluster.streams_.at(stream);
    ++cluster.words;
    cluster.word_bytes += 60 + word.report.pools.size() * 12;
    auto& process = *cluster.processes[to.process];
    if (!to.open_at_coordinator || process.generation != to.process_generation || cut) return;
    cluster.at(process, cluster.in_order(to.last_to_coordinator), [this, id = stream, word](Coordinator& coordinator) {
        if (cluster.streams_.at(id).open_at_coordinator) coordinator.received(id, word);
    });
}

}  // namespace rdmaquota::cluster::sim
