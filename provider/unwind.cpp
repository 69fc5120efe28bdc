// What libgcc's unwinder and libstdc++ call, in this shared object only: what only a newer glibc has, and what would bring
// more than it is worth.
#include "provider/host/find_object.hpp"

#include <cstdlib>

#include <unistd.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// NOLINTNEXTLINE: libgcc's name for it
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(void* address, dl_find_object* result) noexcept {
    return rdmaquota::provider::find_object(address, result);
}
#endif

// libstdc++ reads a tunable by it where it was built with glibc 2.38 or newer, whose headers give strtoul this name.
extern "C" unsigned long strtoul_of_all_versions(const char*, char**, int) noexcept __asm__("strtoul");
// NOLINTNEXTLINE: glibc's name for it
extern "C" __attribute__((visibility("hidden"))) unsigned long __isoc23_strtoul(const char* text, char** end,
                                                                                int base) noexcept {
    return strtoul_of_all_versions(text, end, base);
}

// libstdc++ 16 brings along std::random_device, which nobody uses here, and with it what only glibc 2.36 has.
// NOLINTNEXTLINE: glibc's name for it
extern "C" __attribute__((visibility("hidden"))) unsigned arc4random_of_nobody() noexcept __asm__("arc4random");
unsigned arc4random_of_nobody() noexcept {
    unsigned random = 0;
    (void)!getentropy(&random, sizeof random);
    return random;
}

// Instead of libstdc++'s, which names the exception's type and for that brings a demangler along.
namespace __gnu_cxx {
void __verbose_terminate_handler() { abort(); }
}  // namespace __gnu_cxx
