// A coordinator: elected through etcd, it assigns each pool's ceilings to the nodes that report to it.
//
// It remembers nothing that matters beyond etcd: a successor starts from what nodes hold by etcd (rule 10), and gives out only what
// is unassigned until they report. A coordinator that was deposed without knowing it cannot write: each transaction compares the
// leader's key, the record, the epoch, the turn and the keys that it replaces (rule 2).
//
// One thread. Nothing here logs; `Notes` tells what an administrator may want to know.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "tools/cluster/core/books.hpp"
#include "tools/cluster/core/plan.hpp"
#include "tools/cluster/core/ports.hpp"

namespace rdmaquota::cluster {

class Coordinator {
public:
    using Done = std::function<void(Result<void>)>;
    using Notes = std::function<void(const std::string&)>;
    struct World {
        Clock& clock;
        Store& store;
        Streams& streams;
        std::function<std::uint32_t()> random;
        Notes note = [](const std::string&) {};
    };
    Coordinator(World world, std::string name) : world_(std::move(world)), name_(std::move(name)) {}

    void tick();  // ten times a second, or more
    // A stream of the node that a certificate names.
    void opened(StreamId stream, const std::string& node);
    void received(StreamId stream, const FromNode& word);
    void closed(StreamId stream);

    bool leads() const noexcept { return state_ == State::leading; }
    const std::string& leader() const noexcept { return leader_; }

    // Commands of an administrator; all are errors at a coordinator that does not lead.
    void apply(ClusterRecord next, Done done);
    // Rule 8: the node holds nothing any more. `number` is that of its newest assignment as it was shown.
    void forget(const std::string& node, std::uint64_t number, Done done);
    // Rule 9, by hand.
    void restored(Done done);

    const Books& books() const noexcept { return books_; }
    const std::map<std::string, std::string>& refused() const noexcept { return refused_; }  // nodes, and why
    // Since when a node of the roster does not answer; none: it does.
    std::optional<Time> away_since(const std::string& node) const;
    std::uint64_t writes() const noexcept { return writes_; }

private:
    enum class State : std::uint8_t { following, loading, leading };
    struct Session {
        std::string node;
        std::uint64_t number = 0;
        Delivery sent;
        bool counts = false;  // it repeated the number: what it says is from after the stream was opened
    };

    // coordinator.cpp: what it leads, and what it writes
    void ask_to_lead();
    void led(const Result<Store::Leader>& leader);
    void follow();
    void load();
    void loaded(Result<Snapshot> snapshot);
    Result<void> take(const Snapshot& snapshot);
    void begin_records(const Snapshot& snapshot);
    void look_for_restore(const Snapshot& snapshot);
    void new_epoch(Done done);
    void write_next();
    void write(Transaction transaction, std::function<void(std::uint64_t revision)> landed, Done done = [](const Result<void>&) {});
    void run_jobs();
    void queue(std::function<void(Done)> job, Done done);
    Transaction fenced() const;

    // sessions.cpp: nodes
    Result<void> admit(const Session& session, const NodeReport& report) const;
    bool adopt(StreamId stream, Session& session);
    bool shows_restore(const Node& node, const NodeReport& report) const;
    bool look_for_restore(const Node& node);
    void refuse(StreamId stream, const std::string& why);
    void deliver(const std::string& node);
    void deliver_all();
    Delivery delivery_of(const Node* node) const;

    World world_;
    std::string name_, leader_;
    State state_ = State::following;
    std::uint64_t leader_revision_ = 0;
    std::uint64_t record_revision_ = 0, epoch_revision_ = 0, turn_revision_ = 0, turn_ = 0;
    Epoch epoch_;
    Books books_;
    Planner planner_;
    std::map<StreamId, Session> sessions_;
    std::map<std::string, StreamId> stream_of_;  // that counts, by node
    std::map<std::string, Time> away_;
    std::map<std::string, std::string> refused_;
    std::deque<std::pair<std::function<void(Done)>, Done>> jobs_;
    std::uint64_t last_session_ = 0, writes_ = 0;
    bool asking_ = false, busy_ = false;  // an answer of etcd is awaited
    bool restore_seen_ = false;
    Time next_lead_{}, last_led_{};
};

}  // namespace rdmaquota::cluster
