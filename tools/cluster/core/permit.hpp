// The writes of one transaction, and the rule that each of them keeps.
#pragma once

#include <cstdint>
#include <set>
#include <string_view>
#include <vector>

#include "tools/cluster/core/plan.hpp"

namespace rdmaquota::cluster {

// Rule 3: a ceiling that is not above the present one is a lowering, and always permitted; every other one only while the sum of what
// all nodes hold, by what etcd has after this transaction, stays within the limit.
class Permit {
public:
    enum class Ceilings : std::uint8_t { as_planned, as_they_are };

    Permit(Books& books, std::uint64_t number) : books_(books), number_(number), sums_(books.sums()) {}

    std::size_t size() const noexcept { return writes_.size(); }
    // Whether the plan's ceiling for the node needs room.
    bool is_raise(const Node& node, std::size_t pool) const noexcept;
    // How much more nodes hold once all raises of the pool are made; whether there is room for that after the writes so far.
    Sum missing(std::size_t pool) const noexcept;
    bool has_room(std::size_t pool, Sum missing) const noexcept;
    // Whether the node acknowledged that it holds nothing at all.
    bool is_free(const Node& node) const noexcept;

    // Adds the node's write. A raise that has no room becomes as large as there is room for. Writes nothing that changes nothing.
    void write(Node& node, Ceilings which = Ceilings::as_planned);
    void erase(const Node& node);
    std::vector<NodeWrite> take() { return std::move(writes_); }

private:
    std::uint64_t present(const Node& node, std::size_t pool) const noexcept;
    std::uint64_t permitted(const Node& node, std::size_t pool, Ceilings which) const noexcept;
    void book(const Node& node, std::size_t pool, std::uint64_t held);

    Books& books_;
    std::uint64_t number_;
    std::set<std::string_view> written_;  // nodes: each is in a transaction once
    std::vector<PoolSums> sums_;          // after the writes so far
    std::vector<NodeWrite> writes_;
};

}  // namespace rdmaquota::cluster
