#include "test/cluster/etcd.hpp"

namespace rdmaquota::cluster::sim {

using namespace std::chrono_literals;

namespace {
constexpr Time hop = 2ms, timeout = 3s, lease = 5s;
}

Written Etcd::commit(const Transaction& transaction) {
    ++raft_index;
    ++transactions;
    for (const auto& [key, what, wanted] : transaction.compares) {
        const auto found = keys.find(key);
        const auto has = found == keys.end()                                  ? 0
                         : what == Transaction::Compare::What::create_revision ? found->second.create_revision
                                                                               : found->second.mod_revision;
        if (has != wanted) return {Written::What::refused, 0};
    }
    ++revision;
    for (const auto& put_key : transaction.puts) put(put_key.key, put_key.value);
    for (const auto& key : transaction.erased) keys.erase(key);
    changed();
    return {Written::What::done, revision};
}

void SimStore::lead(const std::string& name, std::function<void(Result<Leader>)> answer) {
    if (fails()) return after(timeout, [answer] { answer(Error{"no answer"}); });
    events_.after(events_.delay(hop), [this, alive = alive_, name, answer] {
        if (!*alive) return;
        etcd_.expire(events_.now());
        ++etcd_.raft_index;
        const auto found = etcd_.keys.find("leader");
        if (found == etcd_.keys.end()) {
            ++etcd_.revision;
            etcd_.put("leader", name, events_.now() + lease);
        } else if (found->second.value == name) {
            found->second.expires = events_.now() + lease;
        }
        const auto& entry = etcd_.keys.at("leader");
        after(events_.delay(hop), [answer, leader = Leader{entry.value, entry.create_revision}] { answer(leader); });
    });
}

void SimStore::read(std::function<void(Result<Snapshot>)> answer) {
    if (fails()) return after(timeout, [answer] { answer(Error{"no answer"}); });
    events_.after(events_.delay(hop), [this, alive = alive_, answer] {
        if (!*alive) return;
        etcd_.expire(events_.now());
        Snapshot snapshot{etcd_.revision, etcd_.raft_index, {}};
        for (const auto& [key, entry] : etcd_.keys)
            snapshot.keys.push_back({key, entry.value, entry.mod_revision, entry.create_revision});
        after(events_.delay(hop), [answer, snapshot = std::move(snapshot)] { answer(snapshot); });
    });
}

// Without an answer it was lost, or lands: before the writer gives up, or long after.
void SimStore::write(Transaction transaction, std::function<void(Written)> answer) {
    const bool unanswered = fails();
    const bool lands = !unanswered || (!cut && etcd_.up && !events_.random.one_in(3));
    const auto time = unanswered ? Time(static_cast<std::int64_t>(events_.random.below(3 * timeout.count()))) : events_.delay(hop);
    if (unanswered) after(timeout, [answer] { answer({Written::What::unclear, 0}); });
    if (!lands) return;
    auto& events = events_;
    events_.after(time, [&events, &etcd = etcd_, this, alive = alive_, unanswered, transaction = std::move(transaction), answer] {
        etcd.expire(events.now());
        const auto written = etcd.commit(transaction);
        if (unanswered || !*alive) return;
        after(events.delay(hop), [answer, written] { answer(written); });
    });
}

}  // namespace rdmaquota::cluster::sim
