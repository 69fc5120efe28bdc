// The stubs by which libibverbs loads the provider (provider/adoption/stub.c), and unloading them.
//
// The loader runs the constructor of one file once. A second libibverbs of the process that asks for the same stub gets the first one,
// and nothing would adopt its providers. So a stub that has done its work is unloaded: libibverbs keeps no handle of a driver.
#pragma once

namespace rdmaquota::provider {

// Whether one is loaded in the caller's namespace.
bool has_stub() noexcept;

// `address` lies in a stub whose constructor runs.
void note_stub(void* address) noexcept;

// Unloads the stubs whose constructors have returned. Any thread, but not from a constructor. A load and a branch where there is none.
void unload_stubs() noexcept;

}  // namespace rdmaquota::provider
