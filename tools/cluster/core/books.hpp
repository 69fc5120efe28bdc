// The coordinator's view: nodes and pools, what each node holds of each pool, and the sums.
//
// One thread. Rows are kept when a key, a report or the record changes, so that a report costs what one node has, not all nodes.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/cluster/core/held.hpp"

namespace rdmaquota::cluster {

// One node and one pool.
struct Row {
    std::uint64_t ceiling = unset;  // that the node was assigned for its present boot and this epoch; `unset`: none
    std::uint64_t held = unknown, booked = unknown;
    std::uint64_t use = 0, want = 0;
    std::uint64_t floor = 0;
    std::uint64_t planned = unset;  // the ceiling that the plan wants for it; `unset`: as it is

    bool is_hungry() const noexcept { return want > (ceiling == unset ? 0 : ceiling); }
};

struct Node {
    std::string name;
    std::optional<NodeKey> key;
    std::uint64_t key_revision = 0;  // etcd's mod revision; 0: there is no key
    std::optional<NodeReport> report;
    bool connected = false;
    bool in_roster = false, is_new = false;
    std::uint32_t weight = 100;
    std::vector<Row> rows;  // by number of the pool

    // Whether it answers, and knows the epoch: it can be asked to hold less.
    bool is_reachable(std::uint64_t epoch) const noexcept { return connected && report && report->epoch == epoch; }
};

struct PoolSums {
    Sum booked = 0;    // rule 3: nothing is raised while some node's part is unknown, or this would exceed the limit
    Sum held = 0;
    Sum reserved = 0;  // of each node the larger of held and floor
    std::size_t unknown_booked = 0;  // nodes that are not in the sum
    bool is_short = false;  // somebody lacks something, as of the last plan
    bool stale = true;      // something changed since, that another plan may follow from
};

class Books {
public:
    // The record changed: all rows are made anew.
    void set_record(ClusterRecord record, std::uint64_t epoch);
    void set_key(std::string_view node, std::optional<NodeKey> key, std::uint64_t revision);
    void set_report(std::string_view node, NodeReport report);
    void drop_report(std::string_view node);
    void set_connected(std::string_view node, bool connected);
    void remove(std::string_view node);
    void clear();
    // Whether some pool is stale.
    bool is_stale() const noexcept;

    const ClusterRecord& record() const noexcept { return record_; }
    std::uint64_t epoch() const noexcept { return epoch_; }
    std::map<std::string, Node, std::less<>>& nodes() noexcept { return nodes_; }
    const std::map<std::string, Node, std::less<>>& nodes() const noexcept { return nodes_; }
    Node* find(std::string_view name) noexcept;
    std::vector<PoolSums>& sums() noexcept { return sums_; }
    const std::vector<PoolSums>& sums() const noexcept { return sums_; }
    static NodeKnown known(const Node& node, std::uint64_t epoch) noexcept;

private:
    Node& node(std::string_view name);
    void add(const Node& node);
    void subtract(const Node& node);
    void mark_stale(const std::vector<Row>& before, const Node& node);
    void fill(Node& node);
    template <class Change>
    void change(std::string_view name, Change change);

    ClusterRecord record_;
    std::uint64_t epoch_ = 0;
    std::map<std::string, Node, std::less<>> nodes_;  // of the roster, and others that have a key
    std::vector<PoolSums> sums_;
};

}  // namespace rdmaquota::cluster
