// What libgcc's unwinder calls, in this shared object only.
#include "provider/host/find_object.hpp"

#ifdef DLFO_STRUCT_HAS_EH_DBASE
// NOLINTNEXTLINE: libgcc's name for it
extern "C" __attribute__((visibility("hidden"))) int _dl_find_object(void* address, dl_find_object* result) noexcept {
    return rdmaquota::provider::find_object(address, result);
}
#endif
