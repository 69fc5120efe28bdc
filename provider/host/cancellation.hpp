// Keeping pthread_cancel away from the provider's own work. Opening a ledger's lock file or writing a log line is a
// cancellation point, where the thread would end in the middle of a charge. The request is not lost: it takes effect at
// the program's next cancellation point, or, for a thread that is cancelled asynchronously, in the destructor.
//
// The C library ends a thread by unwinding its stack. This library cannot run destructors then: it has its own copy of
// the unwinder (-static-libgcc), which does not know the other's state. So wherever a thread may end, in
// ~NoCancellation and in the real provider's calls that create and destroy, no function of ours on the stack is
// noexcept, and none has a destructor to run.
#pragma once

#include <pthread.h>

namespace rdmaquota::provider {

class NoCancellation {
public:
    NoCancellation() noexcept { pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before_); }
    NoCancellation(const NoCancellation&) = delete;
    ~NoCancellation() noexcept(false) { pthread_setcancelstate(before_, nullptr); }

private:
    int before_ = PTHREAD_CANCEL_ENABLE;
};

}  // namespace rdmaquota::provider
