// Whether an MR pins memory, by what the kernel and its drivers keep of it: for MRs whose creation was not seen, or not all of
// it. Those of mlx5 and rxe alone can be on demand. A driver that is loaded after this program is not known to it; then what is
// on demand is taken as pinned.
#pragma once

#include <rdma/ib_user_ioctl_verbs.h>

#include "kernel_types.h"

struct mlx5_ib_mr___unpinned {
    struct ib_mr ibmr;
    struct ib_umem *umem;
} __attribute__((preserve_access_index));
struct rxe_mr___unpinned {
    struct ib_mr ibmr;
    struct ib_umem *umem;
} __attribute__((preserve_access_index));

#define UMEM_OF(type, mr)                                                                          \
    (bpf_core_field_exists(type, umem)                                                             \
         ? BPF_CORE_READ((type *)((u64)(mr) - bpf_core_field_offset(type, ibmr)), umem)            \
         : (struct ib_umem *)0)

static __always_inline struct ib_umem *umem_of(struct ib_mr *mr) {
    u32 driver = BPF_CORE_READ(mr, device, ops.driver_id);
    if (driver == RDMA_DRIVER_MLX5) return UMEM_OF(struct mlx5_ib_mr___unpinned, mr);
    if (driver == RDMA_DRIVER_RXE) return UMEM_OF(struct rxe_mr___unpinned, mr);
    return 0;
}

// One of all memory there is, which has no length, is on demand with every driver.
static __always_inline bool pins_nothing(struct ib_mr *mr) {
    struct ib_umem *umem;
    if (BPF_CORE_READ(mr, length) == ~0ULL) return true;
    if (BPF_CORE_READ(mr, type) == bpf_core_enum_value(enum ib_mr_type, IB_MR_TYPE_DM)) return true;
    umem = umem_of(mr);
    return umem && BPF_CORE_READ_BITFIELD_PROBED(umem, is_odp);
}
