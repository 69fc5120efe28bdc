// A whole cluster in one process: etcd, coordinators, nodes with their agents, and the streams between them.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "test/cluster/etcd.hpp"
#include "test/cluster/node.hpp"
#include "tools/cluster/coordinator/coordinator.hpp"

namespace rdmaquota::cluster::sim {

struct Settings {
    std::size_t coordinators = 3;
    std::uint64_t store_faults = 0;  // one in so many requests to etcd has no answer
    std::uint64_t duplicates = 0;    // one in so many deliveries comes again, at any later time
    std::uint64_t sidecar_kills = 0;
    Time hop = std::chrono::milliseconds(1);
    bool verbose = false;
};

class Cluster {
public:
    Cluster(std::uint64_t seed, Settings settings);

    Events events;
    Etcd etcd;

    struct Process : public Streams {
        Cluster& cluster;
        std::size_t number;
        std::unique_ptr<SimStore> store;
        std::unique_ptr<Coordinator> coordinator;  // null: it is dead
        std::uint64_t generation = 0;
        Time stopped_until{};

        Process(Cluster& cluster, std::size_t number) : cluster(cluster), number(number) {}
        void start();
        void die();
        void send(StreamId stream, const ToNode& word) override;
        void close(StreamId stream, const std::string& why) override;
    };
    struct Host : public Uplink {
        Cluster& cluster;
        std::size_t number;
        SimNode node;
        std::unique_ptr<Agent> agent;
        std::uint64_t generation = 0;
        StreamId stream = 0;
        std::size_t next = 0;
        bool cut = false;
        Time ticks_at{};

        Host(Cluster& cluster, std::size_t number, std::string name, std::string hardware)
            : cluster(cluster), number(number), node(cluster.events, std::move(name), std::move(hardware)) {}
        void start_agent();
        void stop_agent();
        void connect() override;
        void send(const FromNode& word) override;
        void tick();
    };
    std::vector<std::unique_ptr<Process>> processes;
    std::deque<Host> hosts;
    std::uint64_t words = 0, word_bytes = 0;

    Host& add_host(const std::string& name, const std::string& hardware);
    Coordinator* leader();
    void break_stream(StreamId stream);
    // For a coordinator, unless it died meanwhile; later, while it is stopped.
    void at(Process& process, Time delay, std::function<void(Coordinator&)> what);

private:
    friend struct Process;
    friend struct Host;
    struct Stream {
        std::size_t process, host;
        std::uint64_t process_generation, agent_generation;
        bool open_at_node = true, open_at_coordinator = true;
        Time last_to_node{}, last_to_coordinator{};
    };
    Time in_order(Time& last) {
        last = std::max(last, events.now() + events.delay(settings_.hop));
        return last - events.now();
    }
    void close_at_node(StreamId stream, Time delay);
    void tick(Process& process, std::uint64_t generation);

    Settings settings_;
    std::map<StreamId, Stream> streams_;
    StreamId last_stream_ = 0;
};

}  // namespace rdmaquota::cluster::sim
