// What the guard in the kernel refuses although the ledger allowed it. The kernel may still count what a process held that
// is ending: its lock is gone a moment before its descriptors. So the call is tried again for a moment; after that, others
// use the room around the library.
#pragma once

#include <cerrno>
#include <cstdint>
#include <string>
#include <string_view>

#include "provider/charging/kind.hpp"

namespace rdmaquota::provider {

// No call of the kernel's verbs fails with this by itself.
constexpr int guard_errno = EDQUOT;

// Waits 1, 2, 4, 8, 16 ms: each a try more. False when these are over. errno is kept.
bool wait_for_guard(unsigned tries) noexcept;

// Logs the refusal. errno is kept.
void report_refusal(std::string_view device, Kind kind) noexcept;

// The line without its prefix; for tests.
std::string refusal_line(std::string_view device, Kind kind);

// Calls again what the guard has refused: `call` returns null, with errno set, as long as it does.
template <class Object, class Call>
Object* call_again(std::string_view device, Kind kind, Call call) {
    for (unsigned tries = 0; wait_for_guard(tries); ++tries)
        if (Object* object = call(); object || errno != guard_errno) return object;
    report_refusal(device, kind);
    return nullptr;
}

}  // namespace rdmaquota::provider
