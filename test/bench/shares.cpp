// A pass that divides what tenants may use: 1,000 tenants, each with a ledger and in use, in ten groups with limits below a
// node with limits, 8 devices, all resources. CPU time of the thread, since files wait for nobody here.
#include <ctime>
#include <deque>

#include <fmt/core.h>

#include "shm/ledger/ledger.hpp"
#include "shm/paths.hpp"
#include "shm/policy/policy_lock.hpp"
#include "test/bench/measure.hpp"
#include "tools/common/limits/reload.hpp"
#include "tools/common/shares/share_mover.hpp"

using namespace rdmaquota;

namespace {

constexpr std::size_t devices = 8, groups = 10;
constexpr auto qp = Resource::qp;

double cpu_ns() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return static_cast<double>(time.tv_sec) * 1e9 + static_cast<double>(time.tv_nsec);
}

struct Node {
    struct Leaf {
        std::string key, here;
        LimitsSegment limits;
        Ledger ledger;
        Owner owner;
    };
    std::string path;
    std::vector<std::string> names;
    std::deque<LimitsSegment> inner;
    std::vector<std::string> group_keys, group_paths;
    std::deque<Leaf> leaves;
    std::vector<ShareMember> members;
    ShareMover mover;

    Node(std::string directory, std::size_t tenants) : path(std::move(directory)) {
        for (std::size_t d = 0; d < devices; ++d) names.push_back(fmt::format("mlx5_{}", d));
        publish(tenants);
        for (std::size_t i = 0; i < tenants; ++i) open_leaf(fmt::format("g{}/t{}", i % groups, i));
        open_inner(std::string(node_tenant));
        for (std::size_t g = 0; g < groups; ++g) open_inner(fmt::format("g{}", g));
    }
    void publish(std::size_t tenants) const {
        Policy policy;
        for (const auto& row : resource_table) {
            row_for(policy.node, "*")[index(row.id)] = 10'000'000;
            for (std::size_t g = 0; g < groups; ++g)
                row_for(policy.tenant(fmt::format("g{}", g)).limits[index(Scope::tenant)], "*")[index(row.id)] = 1'000'000;
        }
        for (std::size_t i = 0; i < tenants; ++i)
            row_for(policy.tenant(fmt::format("g{}/t{}", i % groups, i)).guarantees, "*")[index(qp)] = 10;
        const auto lock = PolicyLock::take(node_policy_path(path));
        const auto done = lock ? publish_policy(*lock, path, policy) : Result<std::string>(Error{lock.error()});
        if (!done) bench::give_up(done.error());
    }
    LimitsSegment limits_of(const std::string& here) const {
        auto limits = LimitsSegment::open(limits_path(here), LimitsSegment::Parts::all);
        if (!limits) bench::give_up(limits.error());
        return std::move(*limits);
    }
    void open_inner(const std::string& key) {
        const auto here = here_path(path, key);
        group_keys.push_back(key);
        group_paths.push_back(here);
        inner.push_back(limits_of(here));
    }
    void open_leaf(const std::string& key) {
        const auto here = here_path(path, key);
        auto ledger = Ledger::open(ledger_path(here));
        if (!ledger) bench::give_up(ledger.error());
        auto owner = ledger->claim(identity_of_self());
        if (!owner) bench::give_up(owner.error());
        for (const auto& name : names) (void)ledger->device_index(name);
        leaves.push_back({key, here, limits_of(here), std::move(*ledger), std::move(*owner)});
    }
    // What is charged beyond limits does not matter here.
    void charge(std::size_t leaf, std::size_t device, Resource resource, std::uint64_t amount) {
        const Limits none;
        (void)leaves[leaf].ledger.charge(leaves[leaf].owner, static_cast<std::uint32_t>(device),
                                         Amounts{}.add(resource, amount), &none);
    }
    double pass(ShareMover::Wants wants, bool at_rest = false, std::string_view only = {},
                ShareMover::Clock::duration most = ShareMover::Clock::duration::max()) {
        members.clear();
        for (std::size_t i = 0; i < inner.size(); ++i) {
            if (inner[i].superseded()) inner[i] = limits_of(group_paths[i]);
            members.push_back({group_keys[i], group_keys[i], group_paths[i], &inner[i], false});
        }
        for (auto& leaf : leaves) {
            if (leaf.limits.superseded()) leaf.limits = limits_of(leaf.here);
            members.push_back({leaf.key, leaf.key, leaf.here, &leaf.limits, true, at_rest});
        }
        const auto begin = cpu_ns();
        const auto done = mover.pass(members, names, wants, ShareMover::Clock::now(), only, most);
        const auto took = cpu_ns() - begin;
        if (!done) bench::give_up(done.error());
        return took;
    }
};

template <typename Change>
void measure(const char* name, Node& node, unsigned runs, Change&& change, bool at_rest = false,
             bool alone = false) {
    std::vector<double> times;
    for (unsigned run = 0; run < runs; ++run) {
        change(run);
        const auto& key = node.leaves[run % node.leaves.size()].key;
        times.push_back(node.pass(ShareMover::Wants::use, at_rest, alone ? std::string_view(key) : std::string_view()));
    }
    bench::print(name, times);
}

// What the sidecar does for one who asks and gets nothing: its own ledger, then one pass over all.
template <typename Change>
void measure_ask_in_vain(Node& node, unsigned runs, Change&& change) {
    constexpr auto most = std::chrono::milliseconds(4);
    std::vector<double> times;
    for (unsigned run = 0; run < runs; ++run) {
        change(run);
        const auto own = node.pass(ShareMover::Wants::use, false, node.leaves[run % node.leaves.size()].key, most);
        times.push_back(own + node.pass(ShareMover::Wants::use, false, {}, most));
    }
    bench::print("shares.ask_in_vain", times);
}

// The passes of the sidecar, until all is divided: the longest, and how many.
template <typename Change>
void measure_paced(Node& node, unsigned runs, Change&& change) {
    std::vector<double> longest, count;
    for (unsigned run = 0; run < runs; ++run) {
        change();
        double most = 0;
        unsigned passes = 0;
        do {
            most = std::max(most, node.pass(ShareMover::Wants::use, false, {}, std::chrono::milliseconds(4)));
            ++passes;
        } while (!node.mover.complete());
        longest.push_back(most);
        count.push_back(passes);
    }
    bench::print("shares.paced", longest);
    bench::print("shares.passes", count);
}

}  // namespace

int main(int argc, char** argv) {
    const auto runs = bench::number_option(argc, argv, "--runs", 31);
    const auto tenants = bench::number_option(argc, argv, "--tenants", 1000);
    const char* scratch = std::getenv("RDMAQUOTA_BENCH_DIR");
    if (scratch == nullptr) bench::give_up("RDMAQUOTA_BENCH_DIR says where to put a quota directory");
    Node node(scratch, tenants);
    bench::print("shares.first", node.pass(ShareMover::Wants::limit));
    measure("shares.rest", node, runs, [](unsigned) {}, true);
    for (std::size_t i = 0; i < tenants; ++i) node.charge(i, i % devices, qp, 20);
    bench::print("shares.first_use", node.pass(ShareMover::Wants::use));
    (void)node.pass(ShareMover::Wants::use);
    measure("shares.nothing", node, runs, [](unsigned) {});
    measure("shares.one", node, runs, [&](unsigned run) { node.charge(run % tenants, 0, qp, 2000); });
    measure("shares.ask", node, runs, [&](unsigned run) { node.charge(run % tenants, 0, qp, 2000); }, false, true);
    measure_ask_in_vain(node, runs, [&](unsigned run) { node.charge(run % tenants, 0, qp, 2000); });
    measure("shares.one_resource", node, runs, [&](unsigned) {
        for (std::size_t i = 0; i < tenants; ++i) node.charge(i, 1, Resource::mr, 1);
    });
    const auto all_use_more = [&] {
        for (std::size_t i = 0; i < tenants; ++i)
            for (const auto& row : resource_table) node.charge(i, i % devices, row.id, 1);
    };
    measure("shares.all", node, runs, [&](unsigned) { all_use_more(); });
    measure_paced(node, runs, all_use_more);
    for (auto& leaf : node.leaves) leaf.ledger.retire(leaf.owner);
}
