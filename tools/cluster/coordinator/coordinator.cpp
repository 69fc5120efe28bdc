// What a coordinator leads and writes. Its nodes are in sessions.cpp.
#include "tools/cluster/coordinator/coordinator.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota::cluster {
namespace {

using namespace std::chrono_literals;
using What = Transaction::Compare::What;

constexpr Time lead_interval = 1s;
constexpr Time longest_silence = 10s;  // of etcd; then the nodes are sent to the coordinator that may lead by now
constexpr std::string_view node_keys = "node/";

const KeyValue* find(const Snapshot& snapshot, std::string_view key) {
    const auto found = std::find_if(snapshot.keys.begin(), snapshot.keys.end(), [&](const KeyValue& kv) { return kv.key == key; });
    return found == snapshot.keys.end() ? nullptr : &*found;
}

std::uint64_t number_of(std::string_view text) {
    std::uint64_t number = 0;
    std::from_chars(text.data(), text.data() + text.size(), number);
    return number;
}

std::uint64_t lead_of(const Snapshot& snapshot) {
    return snapshot.raft_index - std::min(snapshot.raft_index, snapshot.revision);
}

std::string key_of(const std::string& node) { return std::string(node_keys) + node; }

}  // namespace

void Coordinator::tick() {
    const auto now = world_.clock.now();
    if (now >= next_lead_ && !asking_) {
        next_lead_ = now + lead_interval;
        ask_to_lead();
    }
    if (state_ != State::following && now - last_led_ > longest_silence) return follow();
    if (busy_) return;
    if (state_ == State::loading) return load();
    if (state_ != State::leading) return;
    run_jobs();
    if (!busy_) write_next();
}

void Coordinator::ask_to_lead() {
    asking_ = true;
    world_.store.lead(name_, [this](const Result<Store::Leader>& leader) {
        asking_ = false;
        led(leader);
    });
}

// A coordinator that hears nothing from etcd goes on for a while: what it writes is refused if another one leads.
void Coordinator::led(const Result<Store::Leader>& leader) {
    if (!leader) return;
    last_led_ = world_.clock.now();
    leader_ = leader->name;
    const bool is_mine = leader->name == name_;
    if (!is_mine && state_ != State::following) follow();
    if (!is_mine || leader->create_revision == leader_revision_) return;
    if (state_ != State::following) follow();
    leader_revision_ = leader->create_revision;
    state_ = State::loading;
}

// Reports were this leader's memory; the nodes find another one.
void Coordinator::follow() {
    world_.note("leads no more");
    state_ = State::following;
    leader_revision_ = 0;
    books_.clear();
    stream_of_.clear();
    away_.clear();
    refused_.clear();
    for (auto& [job, done] : std::exchange(jobs_, {})) done(Error{"this coordinator leads no more; ask the one that does"});
    for (const auto& [stream, session] : std::exchange(sessions_, {})) world_.streams.close(stream, "this coordinator does not lead");
}

void Coordinator::load() {
    busy_ = true;
    world_.store.read([this](Result<Snapshot> snapshot) {
        busy_ = false;
        if (state_ == State::loading) loaded(std::move(snapshot));
    });
}

void Coordinator::loaded(Result<Snapshot> snapshot) {
    if (!snapshot) return;  // the next tick reads again
    const auto* leader = find(*snapshot, "leader");
    if (leader == nullptr || leader->create_revision != leader_revision_) return follow();
    if (find(*snapshot, "epoch") == nullptr) return begin_records(*snapshot);
    if (const auto taken = take(*snapshot); !taken) return world_.note(taken.error());
    state_ = State::leading;
    world_.note(fmt::format("leads {} nodes", books_.nodes().size()));
    look_for_restore(*snapshot);
    for (const auto& [name, node] : books_.nodes())
        if (look_for_restore(node)) break;
    deliver_all();
}

// Keeps the reports that nodes made to this leader.
Result<void> Coordinator::take(const Snapshot& snapshot) {
    std::map<std::string, NodeReport> reports;
    for (auto& [name, node] : books_.nodes())
        if (node.report) reports.emplace(name, std::move(*node.report));
    books_.clear();
    const auto *epoch_key = find(snapshot, "epoch"), *record_key = find(snapshot, "cluster"), *turn_key = find(snapshot, "turn");
    const auto epoch = Epoch::parse(epoch_key->value);
    const auto record = ClusterRecord::parse(record_key == nullptr ? "" : record_key->value);
    if (!epoch) return Error{epoch.error()};
    if (!record) return Error{record.error()};
    epoch_ = *epoch;
    epoch_revision_ = epoch_key->mod_revision;
    record_revision_ = record_key == nullptr ? 0 : record_key->mod_revision;
    turn_revision_ = turn_key == nullptr ? 0 : turn_key->mod_revision;
    turn_ = turn_key == nullptr ? 0 : number_of(turn_key->value);
    books_.set_record(*record, epoch_.number);
    for (const auto& kv : snapshot.keys) {
        if (!kv.key.starts_with(node_keys)) continue;
        const auto key = NodeKey::parse(kv.value);
        if (!key) return Error{key.error()};
        books_.set_key(kv.key.substr(node_keys.size()), *key, kv.mod_revision);
    }
    books_.set_record(*record, epoch_.number);  // also for nodes that have left it
    for (auto& [name, report] : reports)
        if (books_.find(name) != nullptr) {
            books_.set_report(name, std::move(report));
            books_.set_connected(name, stream_of_.contains(name));
        }
    for (const auto& [name, node] : books_.nodes())
        if (!node.connected) away_.emplace(name, world_.clock.now());
    return {};
}

void Coordinator::begin_records(const Snapshot& snapshot) {
    Transaction transaction;
    transaction.compares = {{"leader", What::create_revision, leader_revision_}, {"epoch", What::mod_revision, 0}};
    transaction.puts = {{"epoch", Epoch{Epoch::after(0, world_.random()), lead_of(snapshot)}.text()}, {"cluster", ""}, {"turn", "0"}};
    write(std::move(transaction), [this](std::uint64_t) { state_ = State::loading; });
}

// Rule 9. etcd's raft index only gains on its revision, unless a snapshot was restored.
void Coordinator::look_for_restore(const Snapshot& snapshot) {
    const auto lead = lead_of(snapshot);
    if (lead < epoch_.lead) {
        world_.note("etcd was restored from a backup: a new epoch begins");
        return new_epoch([](const Result<void>&) {});
    }
    if (lead == epoch_.lead) return;
    auto transaction = fenced();
    transaction.puts.push_back({"epoch", Epoch{epoch_.number, lead}.text()});
    write(std::move(transaction), [this, lead](std::uint64_t revision) {
        epoch_.lead = lead;
        epoch_revision_ = revision;
    });
}

// Rule 9: above all that any node has heard of.
void Coordinator::new_epoch(Done done) {
    auto highest = epoch_.number;
    for (const auto& [name, node] : books_.nodes())
        if (node.report) highest = std::max(highest, node.report->epoch);
    const Epoch next{Epoch::after(highest, world_.random()), 0};
    auto transaction = fenced();
    transaction.puts.push_back({"epoch", next.text()});
    write(std::move(transaction),
          [this, next](std::uint64_t revision) {
              epoch_ = next;
              epoch_revision_ = revision;
              books_.set_record(books_.record(), epoch_.number);
              world_.note("a new epoch began: no ceiling rises until all nodes of the roster have reported");
              deliver_all();
          },
          std::move(done));
}

// Rule 2, but for the keys of nodes.
Transaction Coordinator::fenced() const {
    Transaction transaction;
    transaction.compares = {{"leader", What::create_revision, leader_revision_},
                            {"cluster", What::mod_revision, record_revision_},
                            {"epoch", What::mod_revision, epoch_revision_},
                            {"turn", What::mod_revision, turn_revision_}};
    transaction.puts = {{"turn", fmt::format("{}", turn_ + 1)}};
    return transaction;
}

void Coordinator::write_next() {
    if (!books_.is_stale()) return;
    auto writes = planner_.next(books_, turn_ + 1);
    if (writes.empty()) return;
    auto transaction = fenced();
    for (const auto& [node, key, revision, erase] : writes) {
        transaction.compares.push_back({key_of(node), What::mod_revision, revision});
        if (erase) transaction.erased.push_back(key_of(node));
        else transaction.puts.push_back({key_of(node), key.text()});
    }
    write(std::move(transaction), [this, writes = std::move(writes)](std::uint64_t revision) {
        for (const auto& [node, key, before, erase] : writes) {
            if (erase) {
                books_.remove(node);
                away_.erase(node);
                continue;
            }
            books_.set_key(node, key, revision);
            deliver(node);
        }
    });
}

// One at a time. Whatever is not known to have landed or to have been refused is read again.
void Coordinator::write(Transaction transaction, std::function<void(std::uint64_t revision)> landed, Done done) {
    busy_ = true;
    ++writes_;
    const bool takes_turn =
        std::any_of(transaction.puts.begin(), transaction.puts.end(), [](const KeyValue& put) { return put.key == "turn"; });
    const auto leadership = leader_revision_;
    world_.store.write(std::move(transaction), [this, takes_turn, leadership, landed = std::move(landed), done = std::move(done)](Written written) {
        busy_ = false;
        if (leader_revision_ != leadership) return done(Error{"another coordinator leads now; look what is in force"});
        if (written.what != Written::What::done) {
            state_ = State::loading;
            return done(Error{written.what == Written::What::refused ? "something changed meanwhile; try again"
                                                                     : "etcd does not answer; look what is in force"});
        }
        if (takes_turn) {
            turn_revision_ = written.revision;
            ++turn_;
        }
        landed(written.revision);
        done({});
    });
}

void Coordinator::run_jobs() {
    while (!busy_ && state_ == State::leading && !jobs_.empty()) {
        auto [job, done] = std::move(jobs_.front());
        jobs_.pop_front();
        job(std::move(done));
    }
}

void Coordinator::queue(std::function<void(Done)> job, Done done) {
    if (state_ == State::following) return done(Error{"this coordinator does not lead"});
    jobs_.emplace_back(std::move(job), std::move(done));
}

void Coordinator::apply(ClusterRecord next, Done done) {
    queue([this, next = std::move(next)](Done finished) {
        auto applied = cluster::apply(books_.record(), next, record_revision_, epoch_.number);
        if (!applied) return finished(Error{applied.error()});
        auto transaction = fenced();
        transaction.puts.push_back({"cluster", applied->text()});
        write(std::move(transaction),
              [this, record = *applied](std::uint64_t revision) {
                  record_revision_ = revision;
                  books_.set_record(record, epoch_.number);
                  for (const auto& [name, node] : books_.nodes())
                      if (!node.connected) away_.emplace(name, world_.clock.now());
                  deliver_all();
              },
              std::move(finished));
    }, std::move(done));
}

void Coordinator::forget(const std::string& node, std::uint64_t number, Done done) {
    queue([this, node, number](Done finished) {
        auto* known = books_.find(node);
        if (known == nullptr) return finished(Error{fmt::format("there is no node {} in the cluster", printable(node))});
        if (known->connected)
            return finished(Error{fmt::format("node {} answers, so it is not forgotten: what it holds is in use", printable(node))});
        if (known->key && known->key->number != number)
            return finished(Error{fmt::format("node {} was assigned something else since it was shown; look again", printable(node))});
        NodeKey key;
        key.epoch = epoch_.number;
        key.number = turn_ + 1;
        for (const auto& pool : books_.record().pools) key.pools[pool.id] = {};
        auto transaction = fenced();
        transaction.compares.push_back({key_of(node), What::mod_revision, known->key_revision});
        transaction.puts.push_back({key_of(node), key.text()});
        write(std::move(transaction),
              [this, node, key](std::uint64_t revision) {
                  books_.drop_report(node);
                  books_.set_key(node, key, revision);
                  refused_.erase(node);
              },
              std::move(finished));
    }, std::move(done));
}

void Coordinator::restored(Done done) {
    queue([this](Done finished) { new_epoch(std::move(finished)); }, std::move(done));
}

}  // namespace rdmaquota::cluster
