// The shares of the node's tenants, as the sidecar moves them: at each tick, and at once for a program that asks.
//
// One thread.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/shares/share_mover.hpp"
#include "tools/rdmaquotad/core/node.hpp"
#include "tools/rdmaquotad/core/node_events.hpp"

namespace rdmaquota {

class Grants {
public:
    Grants(Node& node, NodeEvents& events) : node_(node), events_(events) {}

    // Divides anew what changed. `devices` are those of the machine.
    void pass(const std::vector<std::string>& devices);
    // The same at once, for what the programs of one tenant, by key or name, ask for; of the empty name: for all.
    Result<void> pass_for(std::string_view tenant);

    // Of tenants that use more than their share, which others want.
    const std::vector<ShareDebt>& debts() const noexcept { return mover_.debts(); }
    std::size_t moves() const noexcept { return mover_.moves(); }

private:
    Result<void> move(std::string_view only);
    void reap();
    void tell();

    Node& node_;
    NodeEvents& events_;
    ShareMover mover_;
    std::vector<ShareMember> members_;
    std::vector<std::string> devices_;
    std::vector<ShareDebt> told_;
    std::string said_;
    ShareMover::Clock::time_point reaped_{}, read_{};
    ShareMover::Clock::duration reading_took_{};  // of all, the last time
};

}  // namespace rdmaquota
