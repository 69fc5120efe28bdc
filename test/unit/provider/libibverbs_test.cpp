// The layout probe: on this machine's libibverbs, and on look-alikes that lie.
#include <catch2/catch.hpp>

#include <cstring>

#include <dlfcn.h>

#include "provider/abi/libibverbs.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

// Behaves like the real one of a layout, as far as the probe can see: copies the ops to their place
// and the mirrored ones to the public struct, whose fields are found from its end.
struct LookAlike {
    Layout layout;
    std::size_t shift = 0;       // bytes by which the ops are off
    bool lose_a_mirror = false;  // one public copy is missing
};
LookAlike look_alike;

void fake_set_ops(void* context, const void* ops) {
    const auto* table = static_cast<const std::uintptr_t*>(ops);
    const auto growth = look_alike.layout.front_words * sizeof(void*);
    const auto place = [&](std::size_t offset) {
        return static_cast<char*>(context) + growth + offset - offsetof(verbs_context, query_port);
    };
    char* private_part = nullptr;
    std::memcpy(&private_part, place(offsetof(verbs_context, priv)), sizeof private_part);
    std::memcpy(private_part + ops_offset + look_alike.shift, table, look_alike.layout.ops * sizeof(void*));
    const auto mirror = [&](Op op, std::size_t offset) {
        std::memcpy(place(offset), &table[position(look_alike.layout, op)], sizeof(void*));
    };
#define MIRROR(name) mirror(Op::name, offsetof(verbs_context, name));
    MIRROR(advise_mr) MIRROR(alloc_dm) MIRROR(alloc_null_mr) MIRROR(alloc_parent_domain) MIRROR(alloc_td)
    MIRROR(attach_counters_point_flow) MIRROR(close_xrcd) MIRROR(create_counters) MIRROR(create_flow_action_esp)
    MIRROR(create_qp_ex) MIRROR(create_rwq_ind_table) MIRROR(create_srq_ex) MIRROR(create_wq) MIRROR(dealloc_td)
    MIRROR(destroy_counters) MIRROR(destroy_flow_action) MIRROR(destroy_rwq_ind_table) MIRROR(destroy_wq)
    MIRROR(free_dm) MIRROR(get_srq_num) MIRROR(modify_cq) MIRROR(modify_flow_action_esp) MIRROR(modify_qp_rate_limit)
    MIRROR(modify_wq) MIRROR(open_qp) MIRROR(open_xrcd) MIRROR(post_srq_ops) MIRROR(query_device_ex)
    MIRROR(query_rt_values) MIRROR(read_counters)
#undef MIRROR
#define MIRROR(name) mirror(Op::name, offsetof(verbs_context, context.ops.name));
    MIRROR(alloc_mw) MIRROR(bind_mw) MIRROR(dealloc_mw) MIRROR(poll_cq) MIRROR(post_recv) MIRROR(post_send)
    MIRROR(post_srq_recv) MIRROR(req_notify_cq)
#undef MIRROR
    mirror(Op::create_flow, offsetof(verbs_context, ibv_create_flow));
    mirror(Op::destroy_flow, offsetof(verbs_context, ibv_destroy_flow));
    if (!look_alike.lose_a_mirror) mirror(Op::reg_dm_mr, offsetof(verbs_context, reg_dm_mr));
}

Result<Libibverbs> find(void* handle) {
    REQUIRE(handle);
    for (const auto& layout : layouts)
        if (const auto set_ops = Libibverbs::set_ops_of(handle, layout.pabi)) return Libibverbs::probe(layout.pabi, set_ops);
    return Error{"it has no verbs_set_ops"};
}

}  // namespace

TEST_CASE("the probe knows this machine's libibverbs") {
    const auto library = find(dlopen("libibverbs.so.1", RTLD_NOW));
    if (!library) FAIL(library.error());
    CHECK(library.value().layout().ops >= 76);
}

TEST_CASE("what stands in for an op that a provider lacks is told from libibverbs' own commands") {
    void* loaded = dlopen("libibverbs.so.1", RTLD_NOW);
    REQUIRE(loaded);
    const auto library = find(loaded);
    REQUIRE(library);
    auto* const version = library.value().layout().pabi == 34 ? "IBVERBS_PRIVATE_34" : "IBVERBS_PRIVATE_59";
    auto* const command = static_cast<char*>(dlvsym(loaded, "ibv_cmd_create_flow", version));
    REQUIRE(command);
    CHECK_FALSE(library.value().stands_in(reinterpret_cast<OpPointer>(command)));
    CHECK(library.value().stands_in(reinterpret_cast<OpPointer>(command + 1)));  // no exported name
    CHECK_FALSE(library.value().stands_in(reinterpret_cast<OpPointer>(fake_set_ops)));  // not in libibverbs
}

TEST_CASE("the probe tells the layouts apart, those of one PABI too") {
    for (const auto& layout : layouts) {
        look_alike = {layout};
        const auto found = Libibverbs::probe(layout.pabi, fake_set_ops);
        if (!found) FAIL(found.error());
        CHECK(found.value().layout().release == layout.release);
    }
}

TEST_CASE("the probe refuses what is not as it knows it") {
    look_alike = {layouts[2]};
    look_alike.shift = 8;
    CHECK_THAT(Libibverbs::probe(34, fake_set_ops).error(), Catch::Contains("ops outside of their table"));

    look_alike = {layouts[2]};
    look_alike.lose_a_mirror = true;
    CHECK_THAT(Libibverbs::probe(34, fake_set_ops).error(), Catch::Contains("op reg_dm_mr is elsewhere"));

    look_alike = {layouts[2]};
    look_alike.layout.ops = 74;
    CHECK_THAT(Libibverbs::probe(34, fake_set_ops).error(), Catch::Contains("it has 74 ops"));

    look_alike = {layouts[6]};
    look_alike.layout.front_words = 2;
    CHECK_FALSE(Libibverbs::probe(59, fake_set_ops));
    CHECK_FALSE(Libibverbs::probe(99, fake_set_ops));
}
