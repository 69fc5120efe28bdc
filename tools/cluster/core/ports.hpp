// What coordinator and agent need of the world. A simulation has its own, with a clock, an etcd and streams that it controls.
//
// One thread: no call returns before what it says is queued, and no callback comes from within a call.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/cluster/ceilings.hpp"

namespace rdmaquota::cluster {

using Time = std::chrono::nanoseconds;  // monotonic

class Clock {
public:
    virtual ~Clock() = default;
    virtual Time now() = 0;
};

struct KeyValue {
    std::string key, value;  // without the prefix
    std::uint64_t mod_revision = 0, create_revision = 0;
};

// All keys below the prefix, at one revision, as a linearizable read has them.
struct Snapshot {
    std::uint64_t revision = 0, raft_index = 0;
    std::vector<KeyValue> keys;
};

struct Transaction {
    struct Compare {
        std::string key;
        enum class What : std::uint8_t { mod_revision, create_revision } what{};
        std::uint64_t revision = 0;  // 0: there is no such key
    };
    std::vector<Compare> compares;
    std::vector<KeyValue> puts;  // key and value
    std::vector<std::string> erased;
};

struct Written {
    enum class What : std::uint8_t {
        done,
        refused,  // a comparison failed: nothing was changed
        unclear,  // no answer: it may have been made, or be made later
    } what{};
    std::uint64_t revision = 0;
};

// etcd. Each call is answered once.
class Store {
public:
    virtual ~Store() = default;
    struct Leader {
        std::string name;
        std::uint64_t create_revision = 0;
    };
    // Puts the leader's key with a lease of this process where there is none, renews the lease, and says who leads.
    virtual void lead(const std::string& name, std::function<void(Result<Leader>)> answer) = 0;
    virtual void read(std::function<void(Result<Snapshot>)> answer) = 0;
    virtual void write(Transaction transaction, std::function<void(Written)> answer) = 0;
};

using StreamId = std::uint64_t;

// A coordinator's word to a node, and the answer. `stream` is a number of the coordinator's that the node repeats: who does not, did
// not hear it, so its word is from before.
struct ToNode {
    std::uint64_t stream = 0;
    Delivery delivery;
};
struct FromNode {
    std::uint64_t stream = 0;
    NodeReport report;
};

// The agents' streams, at a coordinator. In each, what is sent arrives in order, or the stream ends.
class Streams {
public:
    virtual ~Streams() = default;
    virtual void send(StreamId stream, const ToNode& word) = 0;
    virtual void close(StreamId stream, const std::string& why) = 0;
};

}  // namespace rdmaquota::cluster
