// Moves shares between tenants, so that each parent's limit holds over children that share no memory.
//
// Invariant: for each tenant that has others below it, and for the node, the sum over all leaves below of
// max(share, what is charged) never exceeds the limit, unless it did when the limit was set. What is charged is what passed
// the comparison of generations; a gate may be higher for a moment, while its charger backs out. This is exact without
// waiting for anyone (Dekker's algorithm): a charger raises its gate, then compares the generation of its limits and backs out
// when it changed and what it reads then is exceeded. The mover stores a lower share, bumps the generation, and then
// reads the gate: what is free by that reading can be handed on, since every later charger sees the lower share. So it
// lowers before it raises, and when it is killed in between, the sum is below the limit. A share that somebody else
// left may have been stored without the bump, so it is bumped before it counts. test/model/shares.pml is the same in Promela.
//
// One mover at a time (PolicyLock of shares_path). One thread. Nothing here logs.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "policy/result.hpp"
#include "shm/policy/limits_writer.hpp"
#include "tools/common/shares/division.hpp"
#include "tools/common/shares/share_tree.hpp"

namespace rdmaquota {

// A tenant that uses more than its share, which others want.
struct ShareDebt {
    std::string tenant;  // as it is shown
    std::string device;
    Resource resource{};
    std::uint64_t used = 0, share = 0;
};

// What a tenant asked for and is its fair share, and what those with debts will free for it.
struct Earmark {
    std::string tenant;  // as it is shown
    std::string device;
    Resource resource{};
    std::uint64_t amount = 0;
};

class ShareMover {
public:
    using Clock = ShareTree::Clock;
    // Whose shares a pass is to fit: what tenants use and ask for, or, without a sidecar, what each may have at most.
    enum class Wants : std::uint8_t { use, limit };

    // `at` is called between any two steps, with the step's name; for tests.
    using At = std::function<void(std::string_view)>;
    explicit ShareMover(At at = {}) : at_(std::move(at)) {}

    // Takes the kernel's word for what is used, where it has one: a forged ledger then takes nothing from others. Call it
    // again when that changes; for a kernel that refuses what exceeds the limits of tenants with others below, since what is
    // charged and not yet made does not count.
    void ask_kernel(CountedUses uses) { tree_.ask_kernel(std::move(uses)); }

    // One pass. Reads only the gates of the tenant `only`, unless it is empty: all others are as they were at the last
    // pass. Divides what changed, and allocates nothing where nothing did. An error when some limits could not be changed;
    // the invariant holds nevertheless. What takes longer than `most` is left to the next pass, see `complete`; a pass after
    // tenants or devices changed takes what it takes.
    Result<void> pass(std::span<const ShareMember> members, std::span<const std::string> devices, Wants wants,
                      Clock::time_point now = Clock::now(), std::string_view only = {},
                      Clock::duration most = Clock::duration::max());
    // Whether all that had to be read and divided was, in the last pass and in those before it that stopped.
    bool complete() const noexcept { return complete_; }
    // Whether the last pass raised a share of the tenant with this key or name.
    bool has_raised(std::string_view tenant) const;

    const std::vector<ShareDebt>& debts() const noexcept { return debts_; }
    // These are in the tenants' limits, too.
    std::vector<Earmark> earmarks() const;
    std::size_t moves() const noexcept { return moves_; }  // of shares, in all passes

private:
    using Tenant = ShareTree::Tenant;
    // The last division of a pair of device and resource.
    struct Divided {
        std::vector<ShareClaim> claims;   // by number of the tenant
        std::vector<ShareClaim> in_steps;  // the same, with what is used rounded up: others than these are divided anew
        std::vector<std::uint64_t> targets;
        bool settled = false;  // the shares are what they shall be
        bool earmarked = true;  // something may be, for some tenant
    };
    struct Move {
        std::size_t tenant, pair;
        std::uint64_t amount;
    };

    enum class Used { in_steps, exactly };
    enum class Parts { now, fair };  // of a division: what each gets, or will once nobody has debts

    void step(std::string_view name) const {
        if (at_) at_(name);
    }
    void bump_foreign();
    bool plan_all(Wants wants, Clock::time_point end);
    void plan(std::size_t pair, Wants wants);
    bool is_unmet(std::size_t pair) const noexcept;
    void claim(std::size_t pair, Wants wants, Used counted);
    ShareClaim claim_of(Tenant& tenant, std::size_t pair, bool by_use, Used counted);
    void claim_for_those_below(std::size_t parent, std::size_t pair);
    void divide_below(std::size_t parent, std::uint64_t total, std::size_t pair, Parts which,
                      std::vector<std::uint64_t>& parts);
    void lower(std::size_t pair, const Divided& divided, bool all);
    void lower_to_spare(std::size_t pair, const Divided& divided);
    void take(std::size_t tenant, std::size_t pair, std::uint64_t target);
    bool is_bounded(std::size_t tenant) const noexcept;
    void raise();
    void raise_one(const Move& move);
    void release(std::size_t pair);
    void find_room(std::size_t pair);
    template <class Change>
    Result<void> change_limits(Tenant& tenant, Change change);
    void apply(std::vector<Move>& moves);
    void apply_to(std::size_t tenant, std::span<const Move> moves);
    std::vector<LimitsWriter::Grant> grants_of(std::span<const Move> moves) const;
    void finish();
    bool find_debts(std::size_t pair);
    void earmark(std::size_t pair, bool owed);
    void write_earmarks();

    At at_;
    ShareTree tree_;
    Division division_;
    std::vector<Divided> divided_;   // by pair
    std::vector<std::size_t> touched_;  // pairs that changed in this pass
    std::vector<Move> lower_, raise_, raised_, marks_;
    std::vector<ShareDebt> debts_;
    std::string problem_;
    std::size_t moves_ = 0, next_pair_ = 0;
    bool complete_ = true;
    // Room for what a pass calculates, by tenant.
    std::vector<ShareClaim> claims_, below_;
    std::vector<std::uint64_t> rooms_, needed_, due_;
    struct Surplus {
        std::uint64_t amount;
        std::size_t tenant;
    };
    std::vector<Surplus> surplus_;
};

std::string shares_path(const std::string& directory);

}  // namespace rdmaquota
