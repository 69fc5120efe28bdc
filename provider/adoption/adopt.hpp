// Adoption: making the real providers' contexts ours, in place.
//
//   libibverbs ── dlopen ──> a stub of this library (stub.c) ──> adopt_configured
//       └─ for each libibverbs in the process: dlopen each provider that it is configured to have and that is not loaded
//       └─ for each provider in the process: find its device table, replace match_device, alloc_context and import_context
//   program ── ibv_open_device ──> our alloc_context
//       └─ charge hca_handle, call the real one, keep its ops, replace those that create or destroy objects with
//          verbs_set_ops of the provider's own libibverbs
//
// The device, the context and all other ops stay the real provider's.
//
// A process may have several libibverbs, each of its own PABI. One that comes later loads a stub again, which finds it. Each namespace
// of dlmopen(3) has a copy of this library of its own; their processes' slot is one (shm/ledger/ledger.hpp, Ledger::join).
#pragma once

namespace rdmaquota::provider {

// Call it once, from the constructor. Adopts the providers that are loaded by now, if a shadow library or LD_PRELOAD has loaded this
// library: a stub calls adopt_configured next. Where there is no libibverbs, does nothing.
void adopt_loaded() noexcept;

// For a stub, which libibverbs has loaded: adopts also the providers that each libibverbs is configured to have. `stub` is an address in
// the stub. It is unloaded when the next device is listed, so that another libibverbs that asks for the same file runs its
// constructor again; libibverbs itself never closes what it loads.
//
// Both log which providers cannot be adopted, and never throw.
void adopt_configured(void* stub) noexcept;

}  // namespace rdmaquota::provider
