// The nodes of a coordinator: whose word counts, and what they are told.
#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "policy/printable.hpp"
#include "tools/cluster/coordinator/coordinator.hpp"

namespace rdmaquota::cluster {

void Coordinator::opened(StreamId stream, const std::string& node) {
    if (state_ != State::leading) return world_.streams.close(stream, "this coordinator does not lead");
    if (books_.find(node) == nullptr) return refuse(stream, fmt::format("node {} is not in the roster", printable(node)));
    auto& session = sessions_[stream];
    session = {node, ++last_session_, delivery_of(books_.find(node)), false};
    world_.streams.send(stream, {session.number, session.sent});
}

void Coordinator::refuse(StreamId stream, const std::string& why) {
    sessions_.erase(stream);
    world_.streams.close(stream, why);
}

void Coordinator::closed(StreamId stream) {
    const auto found = sessions_.find(stream);
    if (found == sessions_.end()) return;
    const auto node = found->second.node;
    sessions_.erase(found);
    const auto counts = stream_of_.find(node);
    if (counts == stream_of_.end() || counts->second != stream) return;
    stream_of_.erase(counts);
    if (books_.find(node) != nullptr) books_.set_connected(node, false);
    away_[node] = world_.clock.now();
}

// Rule 5: one hardware for each name.
Result<void> Coordinator::admit(const Session& session, const NodeReport& report) const {
    const auto found = books_.nodes().find(session.node);
    if (found == books_.nodes().end()) return Error{"it left the cluster"};
    const auto& node = found->second;
    const auto& bound = node.key && !node.key->hardware.empty() ? node.key->hardware : node.report ? node.report->hardware : report.hardware;
    if (bound == report.hardware) return {};
    return Error{fmt::format("node {} reports from other hardware ({}) than it had ({}): it is a clone, or was replaced; in the "
                             "latter case: rdmaquota cluster forget {}",
                             printable(session.node), printable(report.hardware), printable(bound), printable(session.node))};
}

// The newest stream that repeated its number is the node's. A report that an earlier boot sent comes by a stream that was opened
// before, so it does not count.
bool Coordinator::adopt(StreamId stream, Session& session) {
    const auto before = stream_of_.find(session.node);
    if (before != stream_of_.end() && before->second != stream) {
        const auto older = sessions_.find(before->second);
        if (older != sessions_.end() && older->second.number > session.number) return false;
        const auto older_stream = before->second;
        sessions_.erase(older_stream);
        world_.streams.close(older_stream, "the node has a newer stream");
    }
    session.counts = true;
    stream_of_[session.node] = stream;
    return true;
}

bool Coordinator::shows_restore(const Node& node, const NodeReport& report) const {
    if (report.epoch > epoch_.number) return true;
    if (report.epoch < epoch_.number || report.number == 0) return false;
    if (!node.key) return true;
    return node.key->epoch == report.epoch && report.number > node.key->number;
}

void Coordinator::received(StreamId stream, const FromNode& word) {
    const auto found = sessions_.find(stream);
    if (found == sessions_.end() || word.stream != found->second.number) return;
    auto& session = found->second;
    if (const auto admitted = admit(session, word.report); !admitted) {
        refused_[session.node] = admitted.error();
        world_.note(admitted.error());
        return refuse(stream, admitted.error());
    }
    if (!session.counts && !adopt(stream, session)) return refuse(stream, "the node has a newer stream");
    const auto node = session.node;
    away_.erase(node);
    books_.set_report(node, word.report);
    if (!books_.find(node)->connected) books_.set_connected(node, true);
    if (state_ != State::leading) return;  // looks at all nodes once it has read etcd
    if (!look_for_restore(*books_.find(node))) deliver(node);
}

// Rule 9: a node knows of what etcd does not.
bool Coordinator::look_for_restore(const Node& node) {
    if (!node.report || !shows_restore(node, *node.report)) return false;
    if (std::exchange(restore_seen_, true)) return true;
    world_.note(fmt::format("node {} knows a ceiling that etcd does not: etcd was restored from a backup", printable(node.name)));
    restored([this](const Result<void>&) { restore_seen_ = false; });
    return true;
}

// Says nothing twice in a stream.
void Coordinator::deliver(const std::string& node) {
    const auto stream = stream_of_.find(node);
    if (stream == stream_of_.end()) return;
    auto& session = sessions_.at(stream->second);
    auto delivery = delivery_of(books_.find(node));
    if (delivery == session.sent) return;
    session.sent = std::move(delivery);
    world_.streams.send(stream->second, {session.number, session.sent});
}

void Coordinator::deliver_all() {
    for (auto& [stream, session] : sessions_) {
        auto delivery = delivery_of(books_.find(session.node));
        if (delivery == session.sent) continue;
        session.sent = std::move(delivery);
        world_.streams.send(stream, {session.number, session.sent});
    }
}

Delivery Coordinator::delivery_of(const Node* node) const {
    Delivery delivery;
    delivery.cluster_epoch = epoch_.number;
    delivery.boot = "-";  // of nobody: nothing was assigned
    const auto* key = node != nullptr && node->key ? &*node->key : nullptr;
    if (key != nullptr) {
        delivery.epoch = key->epoch;
        delivery.number = key->number;
        delivery.boot = key->boot;
    }
    for (const auto& pool : books_.record().pools) {
        Ceiling ceiling{pool.id, pool.name, unset};
        if (key != nullptr)
            if (const auto assigned = key->pools.find(pool.id); assigned != key->pools.end()) ceiling.amount = assigned->second.ceiling;
        delivery.ceilings.push_back(std::move(ceiling));
    }
    return delivery;
}

std::optional<Time> Coordinator::away_since(const std::string& node) const {
    const auto found = away_.find(node);
    if (found == away_.end()) return std::nullopt;
    return found->second;
}

}  // namespace rdmaquota::cluster
