#include "tools/cluster/core/record.hpp"

#include <algorithm>
#include <charconv>

#include <fmt/core.h>

#include "policy/printable.hpp"

namespace rdmaquota::cluster {
namespace {

// Reads words and numbers that spaces and newlines end. After an error all that follows is empty.
class Words {
public:
    explicit Words(std::string_view text) : text_(text) {}
    bool at_end() const noexcept { return text_.empty(); }
    bool failed() const noexcept { return failed_; }
    std::string_view word() {
        const auto end = std::min(text_.find_first_of(" \n"), text_.size());
        const auto word = text_.substr(0, end);
        text_.remove_prefix(std::min(end + 1, text_.size()));
        return word;
    }
    std::uint64_t number() {
        std::uint64_t value = 0;
        const auto digits = word();
        const auto read = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (read.ec != std::errc() || read.ptr != digits.data() + digits.size()) fail();
        return value;
    }
    Resource resource() {
        const auto found = find_resource(word());
        if (!found) fail();
        return found.value_or(Resource{});
    }
    void fail() noexcept {
        failed_ = true;
        text_ = {};
    }

private:
    std::string_view text_;
    bool failed_ = false;
};

Error unreadable(std::string_view what) {
    return {fmt::format("etcd's record of {} cannot be read: another version wrote it, or it is damaged", what)};
}

// A text may be empty, and has neither spaces nor newlines: boot ids, hardware.
std::string_view or_dash(std::string_view text) { return text.empty() ? "-" : text; }
std::string from_dash(std::string_view word) { return word == "-" ? std::string() : std::string(word); }

std::uint64_t sum_of_floors(const ClusterRecord& record, const PoolName& pool) {
    std::uint64_t sum = 0;
    for (const auto& [name, node] : record.roster)
        if (const auto floor = node.floors.find(pool); floor != node.floors.end()) sum += std::min(floor->second, max_amount);
    return sum;
}

}  // namespace

const Pool* ClusterRecord::find(const PoolName& name) const noexcept {
    const auto found = std::find_if(pools.begin(), pools.end(), [&](const Pool& pool) { return pool.name == name; });
    return found == pools.end() ? nullptr : &*found;
}

std::uint64_t ClusterRecord::floor(std::string_view node, const PoolName& pool) const noexcept {
    const auto found = roster.find(node);
    if (found == roster.end()) return 0;
    const auto floor = found->second.floors.find(pool);
    return floor == found->second.floors.end() ? 0 : floor->second;
}

std::string ClusterRecord::text() const {
    std::string text;
    for (const auto& [id, name, limit] : pools)
        text += fmt::format("pool {} {} {} {}\n", id, limit, info(name.resource).name, name.tenant);
    for (const auto& [name, node] : roster) {
        text += fmt::format("node {} {} {}\n", name, node.weight, node.since_epoch);
        for (const auto& [pool, amount] : node.floors)
            text += fmt::format("floor {} {} {}\n", amount, info(pool.resource).name, pool.tenant);
    }
    return text;
}

Result<ClusterRecord> ClusterRecord::parse(std::string_view text) {
    ClusterRecord record;
    Words words(text);
    RosterNode* node = nullptr;
    while (!words.at_end()) {
        const auto kind = words.word();
        if (kind == "pool") {
            const auto id = words.number(), limit = words.number();
            const auto resource = words.resource();
            record.pools.push_back({id, {std::string(words.word()), resource}, limit});
        } else if (kind == "node") {
            node = &record.roster[std::string(words.word())];
            node->weight = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(words.number(), 1, 10'000));
            node->since_epoch = words.number();
        } else if (kind == "floor" && node != nullptr) {
            const auto amount = words.number();
            const auto resource = words.resource();
            node->floors[{std::string(words.word()), resource}] = amount;
        } else {
            words.fail();
        }
    }
    if (words.failed()) return unreadable("the cluster");
    return record;
}

Result<ClusterRecord> apply(const ClusterRecord& present, ClusterRecord next, std::uint64_t revision, std::uint64_t epoch) {
    if (next.pools.size() > most_pools)
        return Error{fmt::format("{} limits are more than the {} that a cluster can have", next.pools.size(), most_pools)};
    for (auto& pool : next.pools) {
        const auto* before = present.find(pool.name);
        pool.id = before != nullptr ? before->id : ++revision;
        const auto floors = sum_of_floors(next, pool.name);
        if (floors > pool.limit)
            return Error{fmt::format("the floors of all nodes for {} of tenant {} are {}, more than its limit of {}; lower the "
                                     "floors, or raise the limit",
                                     info(pool.name.resource).name, printable(pool.name.tenant), floors, pool.limit)};
    }
    for (auto& [name, node] : next.roster) {
        const auto before = present.roster.find(name);
        node.since_epoch = before != present.roster.end() ? before->second.since_epoch : epoch;
    }
    return next;
}

std::string NodeKey::text() const {
    auto text = fmt::format("{} {} {} {}\n", epoch, number, or_dash(boot), or_dash(hardware));
    for (const auto& [id, assigned] : pools) text += fmt::format("{} {} {}\n", id, assigned.ceiling, assigned.held);
    return text;
}

Result<NodeKey> NodeKey::parse(std::string_view text) {
    NodeKey key;
    Words words(text);
    key.epoch = words.number();
    key.number = words.number();
    key.boot = from_dash(words.word());
    key.hardware = from_dash(words.word());
    while (!words.at_end()) {
        const auto id = words.number();
        auto& assigned = key.pools[id];
        assigned.ceiling = words.number();
        assigned.held = words.number();
    }
    if (words.failed()) return unreadable("a node");
    return key;
}

std::string Epoch::text() const { return fmt::format("{} {}", number, lead); }

Result<Epoch> Epoch::parse(std::string_view text) {
    Words words(text);
    Epoch epoch;
    epoch.number = words.number();
    epoch.lead = words.number();
    if (words.failed()) return unreadable("the epoch");
    return epoch;
}

}  // namespace rdmaquota::cluster
