// Adoption: making the real providers' contexts ours, in place.
//
//   libibverbs ── dlopen ──> this library's constructor
//       └─ for each configured provider: dlopen it, find its device table, replace alloc_context and import_context
//   program ── ibv_open_device ──> our alloc_context
//       └─ charge hca_handle, call the real one, keep its ops, replace those that create or destroy objects with
//          verbs_set_ops
//
// The device, the context and all other ops stay the real provider's.
#pragma once

namespace rdmaquota::provider {

// Call it once, from the constructor. Logs which providers cannot be adopted; never throws.
void adopt_providers() noexcept;

}  // namespace rdmaquota::provider
