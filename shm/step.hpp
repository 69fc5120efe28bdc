// The places between two writes to shared memory, by name. A process may die or stop at any of
// them; the model in test/model and the storms in test/storm use the same names.
//
// In a normal build `step` is nothing. Built with RDMAQUOTA_STEPS, the program that links the ledger
// provides it, and can end or stop itself there.
#pragma once

namespace rdmaquota {

#ifdef RDMAQUOTA_STEPS
void step(const char* name) noexcept;
#else
inline void step(const char*) noexcept {}
#endif

}  // namespace rdmaquota
