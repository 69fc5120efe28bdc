// Objects that are made by a provider's own calls, its DV library's, which do not pass through the verbs ops.
// They are charged as those of the verbs are, to the same ledger, with receipts in the same context; how
// their callers come to us is provider/redirect.hpp.
#pragma once

#include "policy/result.hpp"

namespace rdmaquota::provider {

// Has the creating and destroying calls of libmlx5, that `handle` (of dlopen) is of, go through ours. Once in a
// process: the calls of a second copy are left alone, which is an error.
//
// Charged: mlx5dv_create_qp, _create_cq, _create_wq, _create_mkey, _alloc_dm, _devx_umem_reg and _umem_reg_ex,
// and _devx_obj_create by its opcode. What libmlx5 makes for itself in other calls is not.
Result<void> adopt_mlx5dv(void* handle);

}  // namespace rdmaquota::provider
