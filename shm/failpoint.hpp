// The places between two writes to shared memory, by name: each stands right after the write, or
// the system call, that it is named for. A process may die or stop at any of them; the storms in
// test/storm make it, and the model in test/model has the same steps (names.sh there compares).
//
// In a normal build `failpoint` is nothing. Built with RDMAQUOTA_FAILPOINTS, the program that links the ledger
// provides it, and can end or stop itself there.
#pragma once

namespace rdmaquota {

#ifdef RDMAQUOTA_FAILPOINTS
void failpoint(const char* name) noexcept;
#else
inline void failpoint(const char*) noexcept {}
#endif

}  // namespace rdmaquota
