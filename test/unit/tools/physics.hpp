// Three children of one parent, in a real directory.
#pragma once

#include <algorithm>
#include <deque>
#include <string_view>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "shm/policy/limits_writer.hpp"
#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/shares/divide.hpp"

namespace rdmaquota {

// `physics` may have 1,000 QPs.
struct Physics : TenantNode {
    static constexpr std::uint64_t total = 1000;
    std::vector<std::string> children{"physics/a", "physics/b", "physics/c"};
    std::vector<Ledger> ledgers;
    std::vector<Owner> owners;
    std::deque<LimitsSegment> segments;
    ShareMover mover;
    std::vector<std::string> devices{"rxe0"};
    bool at_rest = false;
    ShareMover::Clock::duration most = ShareMover::Clock::duration::max();

    Physics() {
        Policy policy;
        limit(policy.tenant("physics"), total);
        const std::uint32_t weights[] = {100, 100, 200};
        for (std::size_t i = 0; i < children.size(); ++i) {
            auto& child = policy.tenant(children[i]);
            child.weight = weights[i];
            if (i < 2) row_for(child.guarantees, "*")[index(Resource::qp)] = 100;
        }
        publish(policy);
        for (const auto& child : children) {
            ledgers.push_back(open(child));
            auto owner = ledgers.back().claim(identity_of_self());
            REQUIRE(owner);
            owners.push_back(std::move(*owner));
            REQUIRE(ledgers.back().device_index("rxe0") == 0U);
        }
    }
    ~Physics() {
        for (std::size_t i = 0; i < ledgers.size(); ++i) ledgers[i].retire(owners[i]);
    }
    LimitsSegment limits(std::size_t i) const {
        auto opened = LimitsSegment::open(limits_path(here_path(path, children[i])), LimitsSegment::Parts::all);
        REQUIRE(opened);
        return std::move(*opened);
    }
    std::uint64_t limits_of_default() const {
        return LimitsSegment::open(limits_path(here_path(path)))->limit(Scope::tenant, "rxe0", Resource::qp);
    }
    std::uint64_t in_force(std::size_t i) const { return limits(i).limit(Scope::tenant, "rxe0", Resource::qp); }
    std::vector<std::uint64_t> all_in_force() const { return {in_force(0), in_force(1), in_force(2)}; }
    std::uint64_t used(std::size_t i) { return ledgers[i].gate(0, Resource::qp); }
    void pass(ShareMover& by, ShareMover::Wants wants = ShareMover::Wants::use,
              ShareMover::Clock::time_point now = ShareMover::Clock::now(), std::string_view only = {}) {
        segments.clear();
        std::vector<ShareMember> members;
        const auto places = tenant_places(path);
        for (const auto& place : places) {
            auto opened = LimitsSegment::open(limits_path(place.here), LimitsSegment::Parts::all);
            REQUIRE(opened);
            segments.push_back(std::move(*opened));
            members.push_back({place.key, place.key, place.here, &segments.back(), place.has_ledger(), at_rest});
        }
        const auto done = by.pass(members, devices, wants, now, only, most);
        INFO(done.error());
        REQUIRE(done);
    }
    void pass() { pass(mover); }
    // As a program does.
    bool charge(std::size_t i, std::uint64_t amount) {
        Limits bounds;
        bounds.tenant = in_force(i);
        const auto amounts = Amounts{}.add(Resource::qp, amount);
        if (!ledgers[i].charge(owners[i], 0, amounts, &bounds)) return true;
        auto& word = ledgers[i].demand(0, Resource::qp);
        word = next_demand(word, used(i) + amount);
        return false;
    }
    void uncharge(std::size_t i, std::uint64_t amount) { ledgers[i].uncharge(owners[i], 0, Amounts{}.add(Resource::qp, amount)); }
    std::uint64_t committed() {
        std::uint64_t sum = 0;
        for (std::size_t i = 0; i < children.size(); ++i) {
            const auto granted = limits(i).granted("rxe0", Resource::qp);
            sum += std::max(granted == unset ? 0 : granted, used(i));
        }
        return sum;
    }
};

}  // namespace rdmaquota
