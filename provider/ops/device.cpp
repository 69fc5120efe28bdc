// Device attributes that tell what the quota leaves (clamp_device_attr in the policy).
#include "provider/ops/ops.hpp"

namespace rdmaquota::provider {
namespace {

template <class Attribute>
void lower(Attribute& attribute, std::uint64_t bound) noexcept {
    if (attribute > 0 && static_cast<std::uint64_t>(attribute) > bound) attribute = static_cast<Attribute>(bound);
}

// Maximal numbers become what the process has and may still have, maximal sizes what one more object may ask for.
void clamp(Context& context, ibv_device_attr& attr) {
    for (const auto& [resource, member] : device_maxima) lower(attr.*member, context.most(resource));
    lower(attr.max_qp_wr, std::min(context.largest(Resource::send_wr), context.largest(Resource::recv_wr)));
    lower(attr.max_cqe, context.largest(Resource::cqe));
    lower(attr.max_srq_wr, context.largest(Resource::srq_wr));
    lower(attr.max_mr_size, context.largest(Resource::mr_bytes));
}

// The caller's struct has `bytes`: it may be an older, shorter one.
void clamp_extended(Context& context, ibv_device_attr_ex& attr, std::size_t bytes) {
    const auto known = [&](const auto& field) {
        const auto* end = reinterpret_cast<const char*>(&field + 1);
        return static_cast<std::size_t>(end - reinterpret_cast<const char*>(&attr)) <= bytes;
    };
    if (known(attr.rss_caps)) lower(attr.rss_caps.max_rwq_indirection_tables, context.most(Resource::rwq_ind));
    if (known(attr.max_wq_type_rq)) lower(attr.max_wq_type_rq, context.most(Resource::wq));
    if (known(attr.max_dm_size)) lower(attr.max_dm_size, context.largest(Resource::dm_bytes));
}

int query_device_ex(ibv_context* verbs, const ibv_query_device_ex_input* input, ibv_device_attr_ex* attr,
                    std::size_t bytes) {
    const NoCancellation guard;
    Context* context = Context::find(verbs);
    if (!context) return EINVAL;
    const int status = real_op(*context, Op::query_device_ex, query_device_ex)(verbs, input, attr, bytes);
    const KeepErrno keep;
    const BusErrorsAllowed allowed;
    if (status != 0 || !context->clamps()) return status;
    clamp(*context, attr->orig_attr);
    clamp_extended(*context, *attr, bytes);
    return status;
}

const Wrapper table[] = {
    wrapper(Op::query_device_ex, query_device_ex),
};

}  // namespace

std::span<const Wrapper> device_ops() noexcept { return table; }

}  // namespace rdmaquota::provider
