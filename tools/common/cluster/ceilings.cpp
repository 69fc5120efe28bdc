#include "tools/common/cluster/ceilings.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/core.h>

namespace rdmaquota {
namespace {

constexpr std::string_view heading = "rdmaquota ceilings 1";

// The next word of a line, which `text` then lacks.
std::string_view take_word(std::string_view& text) {
    const auto end = std::min(text.find_first_of(" \n"), text.size());
    const auto word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    return word;
}

bool take_number(std::string_view& text, std::uint64_t& number) {
    const auto word = take_word(text);
    const auto read = std::from_chars(word.data(), word.data() + word.size(), number);
    return read.ec == std::errc() && read.ptr == word.data() + word.size();
}

std::vector<Ceiling>::const_iterator find_pool(const std::vector<Ceiling>& ceilings, const PoolName& pool) {
    return std::find_if(ceilings.begin(), ceilings.end(), [&](const Ceiling& ceiling) { return ceiling.pool == pool; });
}

// What is in force for a pool stays until another ceiling is assigned, also when the pool was removed and added again.
std::uint64_t amount_before(const std::vector<Ceiling>& ceilings, const PoolName& pool) {
    const auto before = find_pool(ceilings, pool);
    return before == ceilings.end() ? unset : before->amount;
}

}  // namespace

// Rule 4: a ceiling of another boot, of another epoch or of an older number is refused. Rule 9: a new epoch begins without a
// number.
bool CeilingRecord::take(const Delivery& delivery, std::string_view boot) {
    if (delivery.cluster_epoch > epoch) {
        epoch = delivery.cluster_epoch;
        number = 0;
    }
    const bool is_forgotten = delivery.boot.empty();
    if (delivery.epoch != epoch || delivery.number <= number || (delivery.boot != boot && !is_forgotten)) {
        if (delivery.cluster_epoch == epoch) learn(delivery.ceilings);
        return false;
    }
    const auto before = std::exchange(ceilings, delivery.ceilings);
    number = delivery.number;
    for (auto& ceiling : ceilings)
        if (is_forgotten) ceiling.amount = 0;
        else if (ceiling.amount == unset) ceiling.amount = amount_before(before, ceiling.pool);
    // A pool that is missing was removed. Not so where the node was forgotten: that is for every boot, so it only lowers.
    for (const auto& [id, pool, amount] : before)
        if (amount != unlimited && find_pool(ceilings, pool) == ceilings.end())
            ceilings.push_back({id, pool, is_forgotten ? 0 : unlimited});
    return true;
}

// Pools that are reported from now on, though they have no ceilings that may be taken.
void CeilingRecord::learn(const std::vector<Ceiling>& told) {
    for (const auto& [id, pool, amount] : told)
        if (std::none_of(ceilings.begin(), ceilings.end(), [&](const Ceiling& known) { return known.id == id; }))
            ceilings.push_back({id, pool, amount_before(ceilings, pool)});
}

std::string CeilingRecord::text() const {
    auto text = fmt::format("{}\n{} {}\n", heading, epoch, number);
    for (const auto& [id, pool, amount] : ceilings)
        text += fmt::format("{} {} {} {}\n", id, amount, info(pool.resource).name, pool.tenant);
    return text + "end\n";
}

Result<CeilingRecord> CeilingRecord::parse(std::string_view text) {
    CeilingRecord record;
    const Error damaged{"the record of the cluster's ceilings is damaged; the next delivery of a coordinator replaces it"};
    if (!text.starts_with(heading)) return damaged;
    text.remove_prefix(std::min(heading.size() + 1, text.size()));
    if (!take_number(text, record.epoch) || !take_number(text, record.number)) return damaged;
    while (!text.starts_with("end\n")) {
        Ceiling ceiling;
        if (!take_number(text, ceiling.id) || !take_number(text, ceiling.amount)) return damaged;
        const auto resource = find_resource(take_word(text));
        if (!resource) return damaged;
        ceiling.pool = {std::string(text.substr(0, text.find('\n'))), *resource};
        text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
        record.ceilings.push_back(std::move(ceiling));
    }
    return record;
}

Result<void> CeilingKeeper::resume(std::string_view saved) {
    auto record = CeilingRecord::parse(saved);
    damaged_ = !record;
    if (!record) return Error{record.error()};
    record_ = std::move(*record);
    return put_all();
}

Result<void> CeilingKeeper::take(const Delivery& delivery) {
    if (damaged_) return Error{"no ceiling of the cluster is taken: the record of those in force is damaged"};
    auto next = record_;
    const bool taken = next.take(delivery, boot_);
    const bool is_put = acknowledged_ == record_.number;
    if (next == record_ && is_put) return {};
    // Saved first: a sidecar that is killed now puts it in force when it starts again, before it reports.
    if (auto saved = effects_.save(next.text()); !saved) return saved;
    if (next.epoch != record_.epoch) acknowledged_ = 0;
    record_ = std::move(next);
    return taken || !is_put ? put_all() : Result<void>();
}

// Rule 3: all limits are lowered before any gate is read for the report, and acknowledged only when all were.
Result<void> CeilingKeeper::put_all() {
    if (auto put = put_again(); !put) return put;
    acknowledged_ = record_.number;
    return {};
}

Result<void> CeilingKeeper::put_again() {
    for (const auto& ceiling : record_.ceilings)
        if (ceiling.amount != unset)
            if (auto put = effects_.put(ceiling.pool, ceiling.amount); !put) return put;
    return effects_.divide();
}

NodeReport CeilingKeeper::report() const {
    NodeReport report{hardware_, boot_, record_.epoch, acknowledged_, {}};
    for (const auto& ceiling : record_.ceilings) {
        const auto figures = effects_.figures(ceiling.pool);
        report.pools.push_back({ceiling.id, std::min(std::max(figures.use, figures.in_force), max_amount), figures.use, figures.want});
    }
    return report;
}

}  // namespace rdmaquota
