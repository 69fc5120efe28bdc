#include "tools/cluster/wire/convert.hpp"

#include "cluster.pb.h"

namespace rdmaquota::cluster::wire {

void write(const ToNode& from, Word& to) {
    to.set_stream(from.stream);
    to.set_cluster_epoch(from.delivery.cluster_epoch);
    to.set_epoch(from.delivery.epoch);
    to.set_number(from.delivery.number);
    to.set_boot(from.delivery.boot);
    for (const auto& [id, pool, amount] : from.delivery.ceilings) {
        auto& ceiling = *to.add_ceilings();
        ceiling.set_id(id);
        ceiling.set_tenant(pool.tenant);
        ceiling.set_resource(std::string(info(pool.resource).name));
        if (amount != unset) ceiling.set_amount(amount);
    }
}

// A resource that this version does not know is left out: it is not reported, so that the coordinator counts it as unknown.
ToNode read(const Word& from) {
    ToNode to{from.stream(), {from.cluster_epoch(), from.epoch(), from.number(), from.boot(), {}}};
    for (const auto& ceiling : from.ceilings())
        if (const auto resource = find_resource(ceiling.resource()))
            to.delivery.ceilings.push_back({ceiling.id(), {ceiling.tenant(), *resource}, ceiling.has_amount() ? ceiling.amount() : unset});
    return to;
}

void write(const FromNode& from, Report& to) {
    to.set_stream(from.stream);
    to.set_hardware(from.report.hardware);
    to.set_boot(from.report.boot);
    to.set_epoch(from.report.epoch);
    to.set_number(from.report.number);
    for (const auto& [id, bound, use, want] : from.report.pools) {
        auto& pool = *to.add_pools();
        pool.set_id(id);
        pool.set_bound(bound);
        pool.set_use(use);
        pool.set_want(want);
    }
}

FromNode read(const Report& from) {
    FromNode to{from.stream(), {from.hardware(), from.boot(), from.epoch(), from.number(), {}}};
    for (const auto& pool : from.pools()) to.report.pools.push_back({pool.id(), pool.bound(), pool.use(), pool.want()});
    return to;
}

}  // namespace rdmaquota::cluster::wire
