#include "makers.hpp"

#include <cerrno>

#include <fmt/core.h>
#include <sys/mman.h>

namespace oracle {
namespace {

template <class T, int (*destroy)(T*)>
int end_with(void* handle) {
    return destroy(static_cast<T*>(handle));
}

void begin(Attempt& a, Kind kind, ibv_context* verbs, const Tally& cost, int (*end)(void*)) {
    a.made.kind = kind;
    a.made.verbs = verbs;
    a.made.cost = cost;
    a.made.end = end;
}

bool make_context(Attempt& a) {
    if (a.pool.count(Kind::context) >= 4) return false;
    begin(a, Kind::context, nullptr, Tally{}.with(Resource::hca_handle), end_with<ibv_context, ibv_close_device>);
    a.text = "open a device";
    attempted(a, [&] { return ibv_open_device(a.device); });
    a.made.verbs = static_cast<ibv_context*>(a.made.handle);
    return true;
}

// A file descriptor of its own, which the rdma cgroup does not count.
bool make_channel(Attempt& a) {
    const auto context = a.pool.pick(Kind::context, a.random);
    if (!context) return false;
    begin(a, Kind::channel, context->verbs, {}, end_with<ibv_comp_channel, ibv_destroy_comp_channel>);
    a.text = "create a completion channel";
    return attempted(a, [&] { return ibv_create_comp_channel(context->verbs); });
}

bool make_pd(Attempt& a) {
    const auto context = a.pool.pick(Kind::context, a.random);
    if (!context) return false;
    begin(a, Kind::pd, context->verbs, one(Resource::pd), end_with<ibv_pd, ibv_dealloc_pd>);
    a.text = "allocate a PD";
    return attempted(a, [&] { return ibv_alloc_pd(context->verbs); });
}

constexpr int entries[] = {1, 2, 16, 100, 1000, 0, -1, 1 << 30};

bool make_cq(Attempt& a) {
    const auto context = a.pool.pick(Kind::context, a.random);
    if (!context) return false;
    const auto channel = a.pool.pick(Kind::channel, a.random, context->verbs);
    const int wanted = a.random.any(entries);
    const int vector = a.random.one_in(10) ? 999 : 0;
    begin(a, Kind::cq, context->verbs, one(Resource::cq).with(Resource::cqe, wanted), end_with<ibv_cq, ibv_destroy_cq>);
    a.text = fmt::format("create a CQ of {} entries, vector {}{}", wanted, vector, channel ? ", with a channel" : "");
    return attempted(
        a, [&] { return ibv_create_cq(context->verbs, wanted, nullptr, channel.as<ibv_comp_channel>(), vector); });
}

bool make_cq_ex(Attempt& a) {
    const auto context = a.pool.pick(Kind::context, a.random);
    if (!context) return false;
    ibv_cq_init_attr_ex attr{};
    attr.cqe = static_cast<std::uint32_t>(a.random.any(entries));
    attr.wc_flags = a.random.one_in(5) ? ~0ULL : std::uint64_t{IBV_WC_STANDARD_FLAGS};
    attr.comp_mask = a.random.one_in(10) ? 1U << 31 : 0;
    begin(a, Kind::cq, context->verbs, one(Resource::cq).with(Resource::cqe, attr.cqe),
          end_with<ibv_cq, ibv_destroy_cq>);
    a.text = fmt::format("create an extended CQ of {} entries, flags {:#x}, mask {:#x}", attr.cqe, attr.wc_flags,
                         attr.comp_mask);
    return attempted(a, [&] {
        auto* cq = ibv_create_cq_ex(context->verbs, &attr);
        return cq ? ibv_cq_ex_to_cq(cq) : nullptr;
    });
}

bool make_mr(Attempt& a) {
    const auto pd = a.pool.pick(Kind::pd, a.random);
    if (!pd) return false;
    constexpr std::size_t lengths[] = {1, 4096, 10000, 65536, 1 << 20, 0};
    constexpr unsigned accesses[] = {0,
                                     IBV_ACCESS_LOCAL_WRITE,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
                                     IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_MW_BIND,
                                     IBV_ACCESS_REMOTE_WRITE,
                                     IBV_ACCESS_ON_DEMAND | IBV_ACCESS_LOCAL_WRITE,
                                     IBV_ACCESS_RELAXED_ORDERING};
    const auto length = a.random.any(lengths);
    const auto access = a.random.any(accesses);
    char* address = a.random.one_in(8) ? reinterpret_cast<char*>(4096) : buffer() + a.random.below(5000);
    begin(a, Kind::mr, pd->verbs, one(Resource::mr), end_with<ibv_mr, ibv_dereg_mr>);
    if (!(access & IBV_ACCESS_ON_DEMAND)) a.made.cost.set(Resource::mr_bytes, static_cast<std::int64_t>(length));
    a.made.length = length;
    a.made.access = static_cast<int>(access);
    a.text = fmt::format("register {} bytes, access {:#x}{}", length, access, address < buffer() ? ", unmapped" : "");
    const bool with_iova = a.random.one_in(3);
    return attempted(a, [&] {
        return with_iova ? ibv_reg_mr_iova2(pd.as<ibv_pd>(), address, length, 0x1000, access)
                         : ibv_reg_mr(pd.as<ibv_pd>(), address, length, static_cast<int>(access));
    });
}

bool make_mw(Attempt& a) {
    const auto pd = a.pool.pick(Kind::pd, a.random);
    if (!pd) return false;
    constexpr int types[] = {IBV_MW_TYPE_1, IBV_MW_TYPE_2, 99};
    const int type = a.random.any(types);
    begin(a, Kind::mw, pd->verbs, one(Resource::mw), end_with<ibv_mw, ibv_dealloc_mw>);
    a.text = fmt::format("allocate a memory window of type {}", type);
    return attempted(a, [&] { return ibv_alloc_mw(pd.as<ibv_pd>(), static_cast<ibv_mw_type>(type)); });
}

constexpr std::uint32_t requests[] = {1, 8, 100, 1000, 0, 1U << 30};

bool make_srq(Attempt& a) {
    const auto pd = a.pool.pick(Kind::pd, a.random);
    if (!pd) return false;
    ibv_srq_init_attr attr{};
    attr.attr.max_wr = a.random.any(requests);
    attr.attr.max_sge = a.random.one_in(8) ? 10000 : 1;
    begin(a, Kind::srq, pd->verbs, one(Resource::srq).with(Resource::srq_wr, attr.attr.max_wr),
          end_with<ibv_srq, ibv_destroy_srq>);
    a.text = fmt::format("create an SRQ of {} requests, {} elements", attr.attr.max_wr, attr.attr.max_sge);
    return attempted(a, [&] { return ibv_create_srq(pd.as<ibv_pd>(), &attr); });
}

// Also of type XRC, with an XRC domain where there is one.
bool make_srq_ex(Attempt& a) {
    const auto pd = a.pool.pick(Kind::pd, a.random);
    if (!pd) return false;
    const auto xrcd = a.pool.pick(Kind::xrcd, a.random, pd->verbs);
    const auto cq = a.pool.pick(Kind::cq, a.random, pd->verbs);
    ibv_srq_init_attr_ex attr{};
    attr.attr.max_wr = a.random.any(requests);
    attr.attr.max_sge = 1;
    attr.comp_mask = IBV_SRQ_INIT_ATTR_PD | IBV_SRQ_INIT_ATTR_TYPE;
    attr.pd = pd.as<ibv_pd>();
    attr.srq_type = IBV_SRQT_BASIC;
    if (a.random.one_in(3) && cq) {
        attr.srq_type = IBV_SRQT_XRC;
        attr.comp_mask |= IBV_SRQ_INIT_ATTR_CQ | IBV_SRQ_INIT_ATTR_XRCD;
        attr.cq = cq.as<ibv_cq>();
        attr.xrcd = xrcd.as<ibv_xrcd>();
        if (!attr.xrcd) attr.comp_mask &= ~static_cast<std::uint32_t>(IBV_SRQ_INIT_ATTR_XRCD);
    }
    begin(a, Kind::srq, pd->verbs, one(Resource::srq).with(Resource::srq_wr, attr.attr.max_wr),
          end_with<ibv_srq, ibv_destroy_srq>);
    a.text = fmt::format("create an extended SRQ of type {}, {} requests", static_cast<int>(attr.srq_type),
                         attr.attr.max_wr);
    return attempted(a, [&] { return ibv_create_srq_ex(pd->verbs, &attr); });
}

struct QpParts {
    Pin pd, send_cq, recv_cq, srq;
    ibv_qp_cap cap;
    ibv_qp_type type;
};

QpParts qp_parts(Attempt& a) {
    auto pd = a.pool.pick(Kind::pd, a.random);
    const auto* verbs = pd ? pd->verbs : nullptr;
    QpParts parts{std::move(pd),
                  a.pool.pick(Kind::cq, a.random, verbs),
                  a.pool.pick(Kind::cq, a.random, verbs),
                  a.random.one_in(3) ? a.pool.pick(Kind::srq, a.random, verbs) : Pin{},
                  {},
                  {}};
    constexpr ibv_qp_type types[] = {IBV_QPT_RC, IBV_QPT_RC,         IBV_QPT_UC,
                                     IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND};
    parts.type = a.random.any(types);
    parts.cap.max_send_wr = a.random.any(requests);
    parts.cap.max_recv_wr = a.random.any(requests);
    parts.cap.max_send_sge = a.random.one_in(8) ? 10000 : 1;
    parts.cap.max_recv_sge = 1;
    if (!parts.pd || !parts.send_cq || !parts.recv_cq) return parts;
    begin(a, Kind::qp, parts.pd->verbs, one(Resource::qp).with(Resource::send_wr, parts.cap.max_send_wr),
          end_with<ibv_qp, ibv_destroy_qp>);
    if (!parts.srq) a.made.cost.set(Resource::recv_wr, parts.cap.max_recv_wr);
    a.text = fmt::format("a QP of type {}, {} sends, {} receives{}", static_cast<int>(parts.type),
                         parts.cap.max_send_wr, parts.cap.max_recv_wr, parts.srq ? ", with an SRQ" : "");
    return parts;
}

bool make_qp(Attempt& a) {
    const auto parts = qp_parts(a);
    if (!parts.pd || !parts.recv_cq || !parts.send_cq) return false;
    ibv_qp_init_attr attr{};
    attr.send_cq = parts.send_cq.as<ibv_cq>();
    attr.recv_cq = parts.recv_cq.as<ibv_cq>();
    attr.srq = parts.srq.as<ibv_srq>();
    attr.cap = parts.cap;
    attr.qp_type = parts.type;
    a.text = "create " + a.text;
    return attempted(a, [&] { return ibv_create_qp(parts.pd.as<ibv_pd>(), &attr); });
}

bool make_qp_ex(Attempt& a) {
    const auto parts = qp_parts(a);
    if (!parts.pd || !parts.recv_cq || !parts.send_cq) return false;
    ibv_qp_init_attr_ex attr{};
    attr.send_cq = parts.send_cq.as<ibv_cq>();
    attr.recv_cq = parts.recv_cq.as<ibv_cq>();
    attr.srq = parts.srq.as<ibv_srq>();
    attr.cap = parts.cap;
    attr.qp_type = parts.type;
    attr.comp_mask = IBV_QP_INIT_ATTR_PD | IBV_QP_INIT_ATTR_SEND_OPS_FLAGS;
    attr.pd = parts.pd.as<ibv_pd>();
    attr.send_ops_flags = a.random.one_in(4) ? ~0ULL : std::uint64_t{IBV_QP_EX_WITH_SEND};
    a.text = fmt::format("create with flags {:#x} {}", attr.send_ops_flags, a.text);
    return attempted(a, [&] { return ibv_create_qp_ex(parts.pd->verbs, &attr); });
}

bool make_ah(Attempt& a) {
    const auto pd = a.pool.pick(Kind::pd, a.random);
    if (!pd) return false;
    ibv_ah_attr attr{};
    attr.is_global = !a.random.one_in(6);
    attr.port_num = a.random.one_in(6) ? 7 : 1;
    attr.grh.hop_limit = 1;
    attr.grh.sgid_index = a.random.one_in(6) ? 200 : 1;
    ibv_query_gid(pd->verbs, 1, 1, &attr.grh.dgid);
    begin(a, Kind::ah, pd->verbs, one(Resource::ah), end_with<ibv_ah, ibv_destroy_ah>);
    a.text = fmt::format("create an AH for port {}, GID index {}", attr.port_num, attr.grh.sgid_index);
    return attempted(a, [&] { return ibv_create_ah(pd.as<ibv_pd>(), &attr); });
}

constexpr Made table[] = {
    {"context", 2, make_context}, {"channel", 2, make_channel}, {"pd", 4, make_pd},       {"cq", 4, make_cq},
    {"cq_ex", 4, make_cq_ex},     {"mr", 6, make_mr},           {"mw", 3, make_mw},       {"srq", 3, make_srq},
    {"srq_ex", 3, make_srq_ex},   {"qp", 6, make_qp},           {"qp_ex", 5, make_qp_ex}, {"ah", 4, make_ah},
};

}  // namespace

std::span<const Made> makers() { return table; }

char* buffer() {
    static char* const memory = static_cast<char*>(
        mmap(nullptr, buffer_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0));
    return memory;
}

}  // namespace oracle
