// etcd as a coordinator sees it: linearizable, each transaction one step; what is under way may be lost, or land after its writer
// gave up waiting.
#pragma once

#include <map>
#include <memory>
#include <string>

#include "test/cluster/events.hpp"
#include "tools/cluster/core/ports.hpp"

namespace rdmaquota::cluster::sim {

class Etcd {
public:
    struct Entry {
        std::string value;
        std::uint64_t mod_revision, create_revision;
        Time expires{};  // 0: never
    };
    // Called after each change.
    std::function<void()> changed = [] {};

    std::map<std::string, Entry> keys;
    std::uint64_t revision = 1, raft_index = 10;
    std::uint64_t transactions = 0, bytes = 0;
    bool up = true;  // a majority answers

    void expire(Time now) {
        std::erase_if(keys, [&](const auto& entry) { return entry.second.expires != Time{} && entry.second.expires <= now; });
    }
    void put(const std::string& key, const std::string& value, Time expires = {}) {
        auto& entry = keys[key];
        if (entry.create_revision == 0) entry.create_revision = revision;
        entry.value = value;
        entry.mod_revision = revision;
        entry.expires = expires;
        bytes += key.size() + value.size();
    }
    Written commit(const Transaction& transaction);

    // A backup, and the same etcd after it was restored: the raft index begins anew.
    struct Backup {
        std::map<std::string, Entry> keys;
        std::uint64_t revision;
    };
    Backup backup() const { return {keys, revision}; }
    void restore(const Backup& from) {
        keys = from.keys;
        keys.erase("leader");
        revision = from.revision;
        raft_index = revision + 1;
    }
};

// One coordinator's connection. It goes on when its coordinator died: what is under way may land.
class SimStore : public Store {
public:
    SimStore(Events& events, Etcd& etcd, std::uint64_t faults) : faults(faults), events_(events), etcd_(etcd) {}
    ~SimStore() override { *alive_ = false; }

    void lead(const std::string& name, std::function<void(Result<Leader>)> answer) override;
    void read(std::function<void(Result<Snapshot>)> answer) override;
    void write(Transaction transaction, std::function<void(Written)> answer) override;

    std::uint64_t faults;  // one in so many requests has no answer; 0: none
    bool cut = false;      // the coordinator does not reach etcd
    Time stopped_until{};  // the coordinator is stopped: it hears no answer before

private:
    bool fails() { return cut || !etcd_.up || (faults != 0 && events_.random.one_in(faults)); }
    template <class Answer>
    void after(Time delay, Answer answer) {
        events_.after(delay, [this, alive = alive_, answer = std::move(answer)] {
            if (!*alive) return;
            if (stopped_until > events_.now()) after(stopped_until - events_.now(), answer);
            else answer();
        });
    }

    Events& events_;
    Etcd& etcd_;
    std::shared_ptr<bool> alive_ = std::make_shared<bool>(true);
};

}  // namespace rdmaquota::cluster::sim
