// Which ceilings to write next: the division of each pool over its nodes, and the writes that are permitted now.
//
// The division is the one that a node has for its tenants (tools/common/shares/division.hpp): max-min by weight; a floor is a
// guarantee. As on a node, a share that nobody else wants stays where it is, and is taken back from those that have most to spare.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tools/cluster/core/books.hpp"
#include "tools/common/shares/division.hpp"

namespace rdmaquota::cluster {

// A write of one node's key.
struct NodeWrite {
    std::string node;
    NodeKey key;
    std::uint64_t revision = 0;  // that the key must still have
    bool erase = false;          // the node left the roster and holds nothing
};

class Planner {
public:
    // etcd takes 128 comparisons and 128 puts in a transaction; each node takes one of each.
    static constexpr std::size_t most_nodes = 62;

    // The next write, which gets the number `number`; empty: nothing is to be done now.
    std::vector<NodeWrite> next(Books& books, std::uint64_t number);

    // Of a denied charge to a division: nodes of a pool that want more than they can have.
    struct Unmet {
        std::size_t nodes = 0;
        std::uint64_t amount = 0;
    };
    Unmet unmet(const Books& books, std::size_t pool) const;

private:
    void plan(Books& books, std::size_t pool);
    void raise_all(Books& books, std::size_t pool);
    void divide(Books& books, std::size_t pool);
    void take_back(std::size_t pool, Sum missing);

    Division division_;
    std::vector<Node*> reachable_;
    std::vector<ShareClaim> claims_;
};

}  // namespace rdmaquota::cluster
