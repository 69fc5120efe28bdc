// Named places between two writes to shared memory. Each stands right after the write, or the system call, that it is
// named for. A process may die or stop at any of them: the storms in test/storm make it do so, and the model in
// test/model has a step of the same name for each (names.sh there compares).
//
// In a normal build `failpoint` does nothing. With RDMAQUOTA_FAILPOINTS, the program that links the ledger defines it
// and can kill or stop itself there.
#pragma once

namespace rdmaquota {

#ifdef RDMAQUOTA_FAILPOINTS
void failpoint(const char* name) noexcept;
#else
inline void failpoint(const char*) noexcept {}
#endif

}  // namespace rdmaquota
