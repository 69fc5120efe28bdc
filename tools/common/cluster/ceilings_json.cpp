#include "tools/common/cluster/ceilings_json.hpp"

#include <fmt/core.h>

#include "tools/common/views/json.hpp"

namespace rdmaquota {
namespace {

const Error wrong_delivery{"\"delivery\" must be an object with cluster_epoch, epoch, number, boot and ceilings"};
const Error wrong_report{"rdmaquotad answers \"cluster\" in words that this version does not know"};

bool take_number(const Json& json, const char* key, std::uint64_t& number) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_number_unsigned()) return false;
    number = found->get<std::uint64_t>();
    return true;
}

bool take_text(const Json& json, const char* key, std::string& text) {
    const auto found = json.find(key);
    if (found == json.end() || !found->is_string()) return false;
    text = found->get<std::string>();
    return true;
}

}  // namespace

Json delivery_json(const Delivery& delivery) {
    Json ceilings = Json::array();
    for (const auto& [id, pool, amount] : delivery.ceilings)
        ceilings.push_back({{"id", id}, {"tenant", pool.tenant}, {"resource", info(pool.resource).name}, {"amount", amount == unset ? Json() : Json(amount)}});
    return {{"cluster_epoch", delivery.cluster_epoch}, {"epoch", delivery.epoch}, {"number", delivery.number}, {"boot", delivery.boot},
            {"ceilings", std::move(ceilings)}};
}

Result<Delivery> parse_delivery(const Json& json) {
    Delivery delivery;
    if (!json.is_object() || !take_number(json, "cluster_epoch", delivery.cluster_epoch) || !take_number(json, "epoch", delivery.epoch) ||
        !take_number(json, "number", delivery.number) || !take_text(json, "boot", delivery.boot))
        return wrong_delivery;
    const auto ceilings = json.find("ceilings");
    if (ceilings == json.end() || !ceilings->is_array()) return wrong_delivery;
    for (const auto& entry : *ceilings) {
        Ceiling ceiling;
        std::string resource;
        if (!entry.is_object() || !take_number(entry, "id", ceiling.id) || !take_text(entry, "tenant", ceiling.pool.tenant) ||
            !take_text(entry, "resource", resource) || ceiling.pool.tenant.empty() || ceiling.pool.tenant.find('\n') != std::string::npos)
            return wrong_delivery;
        const auto known = find_resource(resource);
        if (!known || (!take_number(entry, "amount", ceiling.amount) && !entry.value("amount", Json()).is_null())) return wrong_delivery;
        ceiling.pool.resource = *known;
        delivery.ceilings.push_back(std::move(ceiling));
    }
    return delivery;
}

Json report_json(const NodeReport& report) {
    Json pools = Json::array();
    for (const auto& [id, bound, use, want] : report.pools) pools.push_back({{"id", id}, {"bound", bound}, {"use", use}, {"want", want}});
    return {{"hardware", report.hardware}, {"boot", report.boot}, {"epoch", report.epoch}, {"number", report.number}, {"pools", std::move(pools)}};
}

Result<NodeReport> parse_report(const Json& json) {
    NodeReport report;
    if (!json.is_object() || !take_text(json, "hardware", report.hardware) || !take_text(json, "boot", report.boot) ||
        !take_number(json, "epoch", report.epoch) || !take_number(json, "number", report.number))
        return wrong_report;
    const auto pools = json.find("pools");
    if (pools == json.end() || !pools->is_array()) return wrong_report;
    for (const auto& entry : *pools) {
        PoolUse use;
        if (!entry.is_object() || !take_number(entry, "id", use.id) || !take_number(entry, "bound", use.bound) ||
            !take_number(entry, "use", use.use) || !take_number(entry, "want", use.want))
            return wrong_report;
        report.pools.push_back(use);
    }
    return report;
}

}  // namespace rdmaquota
