// What the guard in the kernel refuses although the ledger allowed it. The kernel may still count what a process held that
// is ending: its lock is gone a moment before its descriptors; or a device is opened, and the sidecar is finding out whose the
// program is (EAGAIN), which takes some 100 ms where the node is busy. So the call is tried again for a moment; after that, others
// use the room around the library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "provider/charging/kind.hpp"

namespace rdmaquota::provider {

// Both throw nothing, yet are not noexcept: a thread may be cancelled at their end (provider/host/cancellation.hpp).
// errno is kept.

// Waits 1, 2, 4 ms and so on to 128 ms, 255 in all: each a try more. False when these are over.
bool wait_for_guard(unsigned tries);

// Logs the refusal.
void report_refusal(std::string_view device, Kind kind, int error);

// The line without its prefix; for tests. Only EDQUOT is no error of a device's.
std::string refusal_line(std::string_view device, Kind kind, int error);

// Calls again what the guard seems to have refused, as long as `call` is refused: it returns true then.
template <class Refused>
void call_again(std::string_view device, Kind kind, int error, Refused call) {
    for (unsigned tries = 0; wait_for_guard(tries); ++tries)
        if (!call()) return;
    report_refusal(device, kind, error);
}

}  // namespace rdmaquota::provider
