// The shares of the node's tenants, as the sidecar moves them: at each tick, and at once for a program that asks.
//
// One thread.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "policy/result.hpp"
#include "tools/common/views/json_fwd.hpp"
#include "tools/common/shares/share_mover.hpp"
#include "tools/rdmaquotad/node/node.hpp"
#include "tools/rdmaquotad/node/node_events.hpp"

namespace rdmaquota {

class Grants {
public:
    Grants(Node& node, NodeEvents& events) : node_(node), events_(events) {}

    // Divides anew what changed. `devices` are those of the machine.
    void pass(const std::vector<std::string>& devices);
    // Goes on with a pass that took too long for once.
    void go_on() {
        if (!mover_.complete()) pass(devices_);
    }
    // Divides all, however long that takes.
    Result<void> pass_at_once();
    // The same for what the programs of one tenant, by key or name, ask for. Takes a few milliseconds at most; false when
    // nothing was found for it, and not all others were read since.
    Result<bool> pass_for(std::string_view tenant);
    // For those who wait for that: goes on, or begins anew, but for a fifth of the time at most.
    void look_again();
    bool has_read_all_since(ShareMover::Clock::time_point time) const noexcept { return read_began_ >= time; }

    // See ShareMover.
    void ask_kernel(CountedUses uses) { mover_.ask_kernel(std::move(uses)); }

    // Of tenants that use more than their share, which others want.
    const std::vector<ShareDebt>& debts() const noexcept { return mover_.debts(); }
    std::vector<Earmark> earmarks() const { return mover_.earmarks(); }
    std::size_t moves() const noexcept { return mover_.moves(); }

private:
    Result<void> move_all(ShareMover::Clock::duration most);
    Result<void> move(std::string_view only, ShareMover::Clock::duration most);
    void reap(ShareMover::Clock::time_point end);
    void tell();
    Json earmarked_by(const ShareDebt& debt) const;

    Node& node_;
    NodeEvents& events_;
    ShareMover mover_;
    std::vector<ShareMember> members_;
    std::vector<std::string> devices_;
    std::vector<ShareDebt> told_;
    std::string said_;
    std::size_t next_reaped_ = 0;
    ShareMover::Clock::time_point began_{}, read_began_{};  // reading all, in one pass or several: now; the last time
    ShareMover::Clock::time_point next_{};                  // when those who ask may have that go on
};

}  // namespace rdmaquota
