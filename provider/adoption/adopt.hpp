// Adoption: making the real providers' contexts ours, in place.
//
//   libibverbs ── dlopen ──> this library's constructor
//       └─ for each configured provider: dlopen it, find its device table, replace
//          alloc_context and import_context
//   program ── ibv_open_device ──> our alloc_context
//       └─ charge hca_handle, call the real one, remember its ops, replace those that create or
//          destroy objects with verbs_set_ops
//
// Nothing else of the real provider changes: its device, its context, its other ops and every
// entry point of its DV library stay its own.
#pragma once

namespace rdmaquota::provider {

// Runs once, from the constructor. Reports what cannot be adopted; never throws.
void adopt_providers() noexcept;

}  // namespace rdmaquota::provider
