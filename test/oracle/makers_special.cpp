// What rxe does not have. On rxe each of these fails and must cost nothing; on a device that has them
// (see test/bench/fake_provider.cpp) they succeed.
#include <fcntl.h>
#include <unistd.h>
#include <cerrno>

#include <fmt/core.h>

#include "makers.hpp"

namespace oracle {
namespace {

template <class T, int (*destroy)(T*)>
int end_with(void* handle) {
    return destroy(static_cast<T*>(handle));
}

// Sets what is made and from what; false when that is not there.
bool begin(Attempt& a, const Pin& from, Kind kind, const char* text, const Tally& cost, int (*end)(void*)) {
    if (!from) return false;
    a.made.kind = kind;
    a.made.verbs = from->verbs;
    a.made.cost = cost;
    a.made.end = end;
    a.text = text;
    return true;
}

Pin a_context(Attempt& a) { return a.pool.pick(Kind::context, a.random); }
Pin a_pd(Attempt& a) { return a.pool.pick(Kind::pd, a.random); }

// The same open device once more: no new handle for the kernel.
bool import_device(Attempt& a) {
    const auto context = a_context(a);
    if (!begin(a, context, Kind::context, "import a device", {}, end_with<ibv_context, ibv_close_device>)) return false;
    const int fd = dup(context->verbs->cmd_fd);
    attempted(a, [&] { return ibv_import_device(fd); });
    if (!a.made.handle) close(fd);
    a.made.verbs = static_cast<ibv_context*>(a.made.handle);
    return true;
}

int end_import_pd(void* handle) {
    ibv_unimport_pd(static_cast<ibv_pd*>(handle));
    return 0;
}
bool import_pd(Attempt& a) {
    const auto pd = a_pd(a);
    if (!begin(a, pd, Kind::domain, "import a PD", {}, end_import_pd)) return false;
    return attempted(a, [&] { return ibv_import_pd(pd->verbs, pd.as<ibv_pd>()->handle); });
}

int end_import_mr(void* handle) {
    ibv_unimport_mr(static_cast<ibv_mr*>(handle));
    return 0;
}
bool import_mr(Attempt& a) {
    const auto pd = a_pd(a);
    if (!begin(a, pd, Kind::domain, "import an MR", {}, end_import_mr)) return false;
    return attempted(a, [&] { return ibv_import_mr(pd.as<ibv_pd>(), 0); });
}

bool make_td(Attempt& a) {
    const auto context = a_context(a);
    if (!begin(a, context, Kind::td, "allocate a thread domain", {}, end_with<ibv_td, ibv_dealloc_td>)) return false;
    ibv_td_init_attr attr{};
    return attempted(a, [&] { return ibv_alloc_td(context->verbs, &attr); });
}

bool make_parent_domain(Attempt& a) {
    const auto pd = a_pd(a);
    if (!begin(a, pd, Kind::domain, "allocate a parent domain", {}, end_with<ibv_pd, ibv_dealloc_pd>)) return false;
    const auto td = a.pool.pick(Kind::td, a.random, pd->verbs);
    ibv_parent_domain_init_attr attr{};
    attr.pd = pd.as<ibv_pd>();
    attr.td = td.as<ibv_td>();
    return attempted(a, [&] { return ibv_alloc_parent_domain(pd->verbs, &attr); });
}

bool make_null_mr(Attempt& a) {
    const auto pd = a_pd(a);
    if (!begin(a, pd, Kind::mr, "allocate a null MR", one(Resource::mr), end_with<ibv_mr, ibv_dereg_mr>)) return false;
    a.made.access = IBV_ACCESS_ON_DEMAND;
    return attempted(a, [&] { return ibv_alloc_null_mr(pd.as<ibv_pd>()); });
}

bool make_dmabuf_mr(Attempt& a) {
    const auto pd = a_pd(a);
    if (!begin(a, pd, Kind::mr, "register a dma-buf", one(Resource::mr).with(Resource::mr_bytes, 8192),
               end_with<ibv_mr, ibv_dereg_mr>))
        return false;
    a.made.length = 8192;
    return attempted(a, [&] { return ibv_reg_dmabuf_mr(pd.as<ibv_pd>(), 0, 8192, 0, -1, IBV_ACCESS_LOCAL_WRITE); });
}

bool make_dm(Attempt& a) {
    const auto context = a_context(a);
    ibv_alloc_dm_attr attr{};
    attr.length = 64 << a.random.below(10);
    if (!begin(a, context, Kind::dm, "allocate device memory",
               one(Resource::dm).with(Resource::dm_bytes, static_cast<std::int64_t>(attr.length)),
               end_with<ibv_dm, ibv_free_dm>))
        return false;
    return attempted(a, [&] { return ibv_alloc_dm(context->verbs, &attr); });
}

bool make_dm_mr(Attempt& a) {
    const auto pd = a_pd(a);
    const auto dm = a.pool.pick(Kind::dm, a.random, pd ? pd->verbs : nullptr);
    if (!dm || !begin(a, pd, Kind::mr, "register device memory", one(Resource::mr), end_with<ibv_mr, ibv_dereg_mr>))
        return false;
    a.made.access = IBV_ACCESS_ON_DEMAND;
    return attempted(a, [&] { return ibv_reg_dm_mr(pd.as<ibv_pd>(), dm.as<ibv_dm>(), 0, 64, IBV_ACCESS_ZERO_BASED); });
}

bool make_xrcd(Attempt& a) {
    const auto context = a_context(a);
    if (!begin(a, context, Kind::xrcd, "open an XRC domain", one(Resource::xrcd), end_with<ibv_xrcd, ibv_close_xrcd>))
        return false;
    ibv_xrcd_init_attr attr{};
    attr.comp_mask = IBV_XRCD_INIT_ATTR_FD | IBV_XRCD_INIT_ATTR_OFLAGS;
    attr.fd = -1;
    attr.oflags = O_CREAT;
    return attempted(a, [&] { return ibv_open_xrcd(context->verbs, &attr); });
}

// A receiving XRC QP has no CQ and no requests of its own.
bool make_xrc_qp(Attempt& a) {
    const auto xrcd = a.pool.pick(Kind::xrcd, a.random);
    if (!begin(a, xrcd, Kind::qp, "create a receiving XRC QP", one(Resource::qp), end_with<ibv_qp, ibv_destroy_qp>))
        return false;
    ibv_qp_init_attr_ex attr{};
    attr.qp_type = IBV_QPT_XRC_RECV;
    attr.comp_mask = IBV_QP_INIT_ATTR_XRCD;
    attr.xrcd = xrcd.as<ibv_xrcd>();
    return attempted(a, [&] { return ibv_create_qp_ex(xrcd->verbs, &attr); });
}

bool open_qp(Attempt& a) {
    const auto context = a_context(a);
    const auto xrcd = a.pool.pick(Kind::xrcd, a.random, context ? context->verbs : nullptr);
    if (!begin(a, context, Kind::qp, "open a shared QP", one(Resource::qp), end_with<ibv_qp, ibv_destroy_qp>))
        return false;
    ibv_qp_open_attr attr{};
    attr.comp_mask = IBV_QP_OPEN_ATTR_NUM | IBV_QP_OPEN_ATTR_XRCD | IBV_QP_OPEN_ATTR_TYPE;
    attr.qp_num = 17;
    attr.xrcd = xrcd.as<ibv_xrcd>();
    attr.qp_type = IBV_QPT_XRC_RECV;
    return attempted(a, [&] { return ibv_open_qp(context->verbs, &attr); });
}

bool make_wq(Attempt& a) {
    const auto pd = a_pd(a);
    const auto cq = a.pool.pick(Kind::cq, a.random, pd ? pd->verbs : nullptr);
    ibv_wq_init_attr attr{};
    attr.wq_type = IBV_WQT_RQ;
    attr.max_wr = static_cast<std::uint32_t>(1 + a.random.below(100));
    attr.max_sge = 1;
    attr.pd = pd.as<ibv_pd>();
    attr.cq = cq.as<ibv_cq>();
    if (!cq || !begin(a, pd, Kind::wq, "create a WQ", one(Resource::wq).with(Resource::recv_wr, attr.max_wr),
                      end_with<ibv_wq, ibv_destroy_wq>))
        return false;
    return attempted(a, [&] { return ibv_create_wq(pd->verbs, &attr); });
}

bool make_wq_table(Attempt& a) {
    const auto wq = a.pool.pick(Kind::wq, a.random);
    const auto context = wq ? Pin{} : a_context(a);
    if (!begin(a, wq ? wq : context, Kind::wq_table, "create a WQ table", one(Resource::rwq_ind),
               end_with<ibv_rwq_ind_table, ibv_destroy_rwq_ind_table>))
        return false;
    ibv_wq* wqs[] = {wq.as<ibv_wq>()};
    ibv_rwq_ind_table_init_attr attr{};
    attr.ind_tbl = wqs;
    return attempted(a, [&] { return ibv_create_rwq_ind_table((wq ? wq : context)->verbs, &attr); });
}

bool make_flow(Attempt& a) {
    const auto qp = a.pool.pick(Kind::qp, a.random);
    if (!begin(a, qp, Kind::flow, "create a flow", one(Resource::flow), end_with<ibv_flow, ibv_destroy_flow>))
        return false;
    ibv_flow_attr attr{};
    attr.size = sizeof attr;
    attr.port = 1;
    return attempted(a, [&] { return ibv_create_flow(qp.as<ibv_qp>(), &attr); });
}

bool make_flow_action(Attempt& a) {
    const auto context = a_context(a);
    if (!begin(a, context, Kind::flow_action, "create a flow action", Tally{}.with(Resource::hca_object),
               end_with<ibv_flow_action, ibv_destroy_flow_action>))
        return false;
    ibv_flow_action_esp_attr attr{};
    return attempted(a, [&] { return ibv_create_flow_action_esp(context->verbs, &attr); });
}

bool make_counters(Attempt& a) {
    const auto context = a_context(a);
    if (!begin(a, context, Kind::counters, "create counters", one(Resource::counters),
               end_with<ibv_counters, ibv_destroy_counters>))
        return false;
    ibv_counters_init_attr attr{};
    return attempted(a, [&] { return ibv_create_counters(context->verbs, &attr); });
}

constexpr Made table[] = {
    {"import_device", 1, import_device},
    {"import_pd", 1, import_pd},
    {"import_mr", 1, import_mr},
    {"td", 1, make_td},
    {"parent_domain", 2, make_parent_domain},
    {"null_mr", 2, make_null_mr},
    {"dmabuf_mr", 2, make_dmabuf_mr},
    {"dm", 2, make_dm},
    {"dm_mr", 2, make_dm_mr},
    {"xrcd", 2, make_xrcd},
    {"xrc_qp", 2, make_xrc_qp},
    {"open_qp", 2, open_qp},
    {"wq", 2, make_wq},
    {"wq_table", 2, make_wq_table},
    {"flow", 2, make_flow},
    {"flow_action", 2, make_flow_action},
    {"counters", 2, make_counters},
};

}  // namespace

std::span<const Made> special_makers() { return table; }

}  // namespace oracle
