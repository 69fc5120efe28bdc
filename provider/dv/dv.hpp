// Charging objects that a program makes by a provider's own calls (its DV library's), which pass no verbs op. They are
// charged like verbs objects: to the same ledger, with receipts in the same context. provider/dv/redirect.hpp is how
// the calls reach us.
#pragma once

#include "policy/result.hpp"
#include "provider/dv/redirect.hpp"

namespace rdmaquota::provider {

// Redirects the creating and destroying calls of the libmlx5 behind `handle` (of dlopen) to ours. Works once in a
// process: the calls of a second copy are left alone, which is an error.
//
// Charged are mlx5dv_create_qp, _create_cq, _create_wq, _create_mkey, _alloc_dm, _devx_umem_reg, _devx_umem_reg_ex, and
// _devx_obj_create by its opcode. Objects that libmlx5 makes for itself in other calls are not.
Result<void> adopt_mlx5dv(MemoryFile& memory, void* handle);

}  // namespace rdmaquota::provider
