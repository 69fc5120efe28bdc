#include "tools/rdmaquotad/grants/cluster_ceilings.hpp"

#include <unistd.h>

#include <algorithm>
#include <random>

#include <fmt/core.h>

#include "policy/tenant.hpp"
#include "shm/paths.hpp"
#include "tools/common/text/file_text.hpp"

namespace rdmaquota {
namespace {

using namespace std::chrono_literals;

constexpr auto asking_lasts = 10s;    // as a share's, see ShareTree
constexpr auto agent_is_there = 5s;   // after it asked

// Both are on the file system that a boot empties, beside the limits.
std::string record_path(const std::string& directory) { return directory + "/cluster-ceilings"; }
std::string boot_path(const std::string& directory) { return directory + "/cluster-boot"; }

// Without spaces, since it is a word in etcd's records. A file overrides it, for machines that have none or several nodes.
std::string hardware(const std::string& directory) {
    for (const auto& path : {directory + "/cluster-hardware", std::string("/sys/class/dmi/id/product_uuid"), std::string("/etc/machine-id")}) {
        auto text = first_line(path);
        std::erase_if(text, [](char c) { return c <= ' '; });
        if (!text.empty()) return text;
    }
    return "unknown";
}

// It ends with the quota directory: who empties that has booted, for the cluster.
Result<std::string> boot(const std::string& directory) {
    if (auto text = first_line(boot_path(directory)); !text.empty()) return text;
    std::random_device random;
    const auto text = fmt::format("{:08x}{:08x}{:08x}", random(), random(), random());
    if (auto written = replace_file(boot_path(directory), text + "\n", 0600); !written) return Error{written.error()};
    return text;
}

}  // namespace

Result<void> ClusterCeilings::begin() {
    if (keeper_) return problem_.empty() ? Result<void>() : Error{problem_};
    const auto& directory = node_.directory();
    const auto saved = file_text(record_path(directory));
    const auto present = boot(directory);
    if (!present) return Error{present.error()};
    keeper_.reset(new CeilingKeeper(*this, hardware(directory), *present));
    if (saved.empty()) return {};
    const auto resumed = keeper_->resume(saved);
    problem_ = resumed ? std::string() : resumed.error();
    return resumed;
}

Result<void> ClusterCeilings::look_after() {
    if (!keeper_ && ::access(record_path(node_.directory()).c_str(), F_OK) != 0) return {};
    if (!node_.writable()) return {};
    if (!keeper_) return begin();
    for (const auto& [id, pool, amount] : keeper_->record().ceilings)
        if (const auto* tenant = node_.find(pool.tenant); amount != unset && tenant != nullptr && tenant->limits() != nullptr)
            if (tenant->limits()->ceiling(pool.resource) != (amount == unlimited ? unset : amount)) return keeper_->put_again();
    return {};
}

Result<NodeReport> ClusterCeilings::report(const Delivery* delivery) {
    if (!node_.writable() || node_.is_own()) return Error{"this rdmaquotad may not change limits; run it as root, for the node's directory"};
    if (auto begun = begin(); !begun) return Error{begun.error()};
    asked_ = Clock::now();
    if (delivery != nullptr) {
        if (auto taken = keeper_->take(*delivery); !taken) return Error{taken.error()};
        ++taken_;
    }
    return keeper_->report();
}

bool ClusterCeilings::may_raise(std::string_view tenant) const {
    if (!keeper_ || Clock::now() - asked_ > agent_is_there) return false;
    const auto& ceilings = keeper_->record().ceilings;
    return std::any_of(ceilings.begin(), ceilings.end(), [&](const Ceiling& ceiling) {
        return ceiling.pool.tenant == tenant || is_below(tenant, ceiling.pool.tenant);
    });
}

Result<void> ClusterCeilings::save(const std::string& record) { return replace_file(record_path(node_.directory()), record, 0600); }

// Rule 3: the writer stores the limit, then raises the generation.
Result<void> ClusterCeilings::put(const PoolName& pool, std::uint64_t amount) {
    const auto wanted = amount == unlimited ? unset : amount;
    auto* tenant = node_.find(pool.tenant);
    if (tenant == nullptr) return {};
    tenant->refresh();
    if (tenant->limits() == nullptr || tenant->limits()->ceiling(pool.resource) == wanted) return {};
    auto writer = tenant->writer();
    if (!writer) return Error{writer.error()};
    auto put = writer->put_ceiling(pool.resource, wanted);
    tenant->refresh();
    return put;
}

// Only tenants that have others below need it.
Result<void> ClusterCeilings::divide() {
    for (const auto& [id, pool, amount] : keeper_ ? keeper_->record().ceilings : std::vector<Ceiling>())
        for (const auto& [key, tenant] : node_.tenants())
            if (is_below(key, pool.tenant)) return grants_.pass_at_once();
    return {};
}

// Reads the gates after every limit was lowered. Those below have, of what the tenant may use, the larger of share and usage.
CeilingKeeper::Figures ClusterCeilings::figures(const PoolName& pool) {
    CeilingKeeper::Figures figures;
    const auto* tenant = node_.find(pool.tenant);
    if (tenant == nullptr) {
        // No process can be in it. When it comes, it begins with its ceiling, or with nothing by the policy's key `cluster`.
        figures.in_force = 0;
        return figures;
    }
    if (tenant->limits() != nullptr)
        if (const auto ceiling = tenant->limits()->ceiling(pool.resource); ceiling != unset) figures.in_force = ceiling;
    for (const auto& [key, other] : node_.tenants())
        if ((key == pool.tenant || is_below(key, pool.tenant)) && other.has_ledger()) add_leaf(other, pool.resource, key != pool.tenant, figures);
    figures.want = std::max(figures.want, figures.use);
    return figures;
}

void ClusterCeilings::add_leaf(const Tenant& tenant, Resource resource, bool is_share, CeilingKeeper::Figures& figures) {
    auto& gates = gates_[tenant.key()];
    gates.reader.read(ledger_path(tenant.place().here));
    const auto now = Clock::now();
    std::uint64_t use = 0, want = 0;
    for (const auto& device : gates.reader.gates()) {
        if (is_port(device.device)) continue;  // its device counts the same
        const auto gate = device.gate[index(resource)], word = device.wanted[index(resource)];
        auto& ask = gates.asks[{device.device, resource}];
        if (word != 0 && word != ask.word) ask = {word, now + asking_lasts};
        // Of a device that is not used any more, whoever asked is gone.
        const bool is_used = std::any_of(device.gate.begin(), device.gate.end(), [](std::uint64_t amount) { return amount != 0; });
        use += gate;
        want += is_used && now < ask.until ? std::max(gate, wanted_amount(word)) : gate;
    }
    const auto granted = is_share && tenant.limits() != nullptr ? tenant.limits()->granted(total_device, resource) : unset;
    figures.use += granted == unset ? use : std::max(use, granted);
    figures.want += want;
}

}  // namespace rdmaquota
