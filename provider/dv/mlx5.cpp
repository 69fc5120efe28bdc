// The calls are declared as in infiniband/mlx5dv.h, which has never changed for them. Their version nodes are from
// providers/mlx5/libmlx5.map, releases 34 to 65.
#include "provider/dv/dv.hpp"

#include <cstddef>
#include <cstdint>

#include "provider/ops/ops.hpp"
#include "provider/dv/redirect.hpp"

struct mlx5dv_cq_init_attr;
struct mlx5dv_qp_init_attr;
struct mlx5dv_wq_init_attr;
struct mlx5dv_alloc_dm_attr;
struct mlx5dv_mkey;
struct mlx5dv_devx_obj;
struct mlx5dv_devx_umem;

// Only their first fields are needed here.
struct mlx5dv_mkey_init_attr {
    ibv_pd* pd;
};
struct mlx5dv_devx_umem_in {
    void* address;
    std::size_t size;
};

namespace rdmaquota::provider {
namespace {

// X(call, version node). Destroying calls come first: if only they get redirected, nothing is charged for ever.
#define RDMAQUOTA_MLX5DV_CALLS(X) \
    X(devx_obj_destroy, "MLX5_1.7") \
    X(devx_umem_dereg, "MLX5_1.7") \
    X(destroy_mkey, "MLX5_1.10") \
    X(create_qp, "MLX5_1.3") \
    X(create_cq, "MLX5_1.1") \
    X(create_wq, "MLX5_1.3") \
    X(create_mkey, "MLX5_1.10") \
    X(alloc_dm, "MLX5_1.10") \
    X(devx_umem_reg, "MLX5_1.7") \
    X(devx_umem_reg_ex, "MLX5_1.19") \
    X(devx_obj_create, "MLX5_1.7")

enum class Call : std::uint8_t {
#define RDMAQUOTA_ENUM(name, version) name,
    RDMAQUOTA_MLX5DV_CALLS(RDMAQUOTA_ENUM)
#undef RDMAQUOTA_ENUM
};
void* real_address(Call call) noexcept;

template <class Function>
Function* real_call(Call call, Function*) noexcept {
    return reinterpret_cast<Function*>(real_address(call));
}

// `self` is the calling wrapper. A context that is not ours, such as a VFIO device's, is not charged.
template <class Object, class... Args>
Object* create(const ibv_context* verbs, Call call, Object* (*self)(Args...), Kind kind, std::uint64_t size,
               std::type_identity_t<Args>... args) {
    Context* context = Context::find(verbs);
    const auto real = real_call(call, self);
    if (!context) return real(args...);
    const auto charge = [&] { return context->charge(kind, size); };
    return create_charged(*context, {nullptr, size, kind}, charge, real, args...);
}

template <class Object>
int destroy(Call call, int (*self)(Object*), std::type_identity_t<Object>* object) {
    const auto [context, receipt] = Context::take_receipt(object);
    return destroy_charged(context, receipt, real_call(call, self), object);
}

// --- objects that the verbs destroy ---------------------------------------------------------------

ibv_qp* create_qp(ibv_context* context, ibv_qp_init_attr_ex* attr, mlx5dv_qp_init_attr* own) {
    return create(context, Call::create_qp, create_qp, Kind::qp, qp_size(attr->cap, attr->srq), context, attr, own);
}

ibv_cq_ex* create_cq(ibv_context* context, ibv_cq_init_attr_ex* attr, mlx5dv_cq_init_attr* own) {
    return create(context, Call::create_cq, create_cq, Kind::cq, attr->cqe, context, attr, own);
}

ibv_wq* create_wq(ibv_context* context, ibv_wq_init_attr* attr, mlx5dv_wq_init_attr* own) {
    return create(context, Call::create_wq, create_wq, Kind::wq, attr->max_wr, context, attr, own);
}

ibv_dm* alloc_dm(ibv_context* context, ibv_alloc_dm_attr* attr, mlx5dv_alloc_dm_attr* own) {
    return create(context, Call::alloc_dm, alloc_dm, Kind::dm, attr->length, context, attr, own);
}

// --- objects of libmlx5 alone -------------------------------------------------------------------------

mlx5dv_mkey* create_mkey(mlx5dv_mkey_init_attr* attr) {
    return create(attr->pd->context, Call::create_mkey, create_mkey, Kind::mr, 0, attr);
}

int destroy_mkey(mlx5dv_mkey* mkey) { return destroy(Call::destroy_mkey, destroy_mkey, mkey); }

// Memory for queues that are made by DEVX.
mlx5dv_devx_umem* devx_umem_reg(ibv_context* context, void* address, std::size_t bytes, std::uint32_t access) {
    return create(context, Call::devx_umem_reg, devx_umem_reg, Kind::umem, bytes, context, address, bytes, access);
}

mlx5dv_devx_umem* devx_umem_reg_ex(ibv_context* context, mlx5dv_devx_umem_in* in) {
    return create(context, Call::devx_umem_reg_ex, devx_umem_reg_ex, Kind::umem, in->size, context, in);
}

int devx_umem_dereg(mlx5dv_devx_umem* umem) { return destroy(Call::devx_umem_dereg, devx_umem_dereg, umem); }

// A command for the adapter begins with its opcode, big-endian (providers/mlx5/mlx5_ifc.h). The number of entries of a
// queue is not read.
Kind command_kind(const void* command, std::size_t bytes) noexcept {
    const auto* byte = static_cast<const std::uint8_t*>(command);
    switch (byte && bytes >= 2 ? byte[0] << 8 | byte[1] : 0) {
        case 0x200: return Kind::mr;    // CREATE_MKEY
        case 0x400: return Kind::cq;    // CREATE_CQ
        case 0x500:                              // CREATE_QP
        case 0x710: return Kind::qp;    // CREATE_DCT
        case 0x700:                              // CREATE_SRQ
        case 0x705:                              // CREATE_XRC_SRQ
        case 0x717:                              // CREATE_XRQ
        case 0x90c: return Kind::srq;   // CREATE_RMP
        case 0x904:                              // CREATE_SQ
        case 0x908: return Kind::wq;    // CREATE_RQ
        default: return Kind::object;
    }
}

mlx5dv_devx_obj* devx_obj_create(ibv_context* context, const void* in, std::size_t in_bytes, void* out,
                                 std::size_t out_bytes) {
    return create(context, Call::devx_obj_create, devx_obj_create, command_kind(in, in_bytes), 0, context, in, in_bytes,
                  out, out_bytes);
}

int devx_obj_destroy(mlx5dv_devx_obj* object) {
    return destroy(Call::devx_obj_destroy, devx_obj_destroy, object);
}

Redirection table[] = {
#define RDMAQUOTA_ROW(name, version) {"mlx5dv_" #name, version, reinterpret_cast<void*>(name)},
    RDMAQUOTA_MLX5DV_CALLS(RDMAQUOTA_ROW)
#undef RDMAQUOTA_ROW
};
bool redirected = false;

void* real_address(Call call) noexcept { return table[static_cast<std::size_t>(call)].real; }

}  // namespace

Result<void> adopt_mlx5dv(MemoryFile& memory, void* handle) {
    if (std::exchange(redirected, true)) return Error{"another copy's are counted already"};
    return redirect(memory, handle, table);
}

}  // namespace rdmaquota::provider
