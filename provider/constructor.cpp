// The provider's two entries: a stub, a shadow library or LD_PRELOAD has loaded it; a stub has adopt what libibverbs is configured to
// have. Everything else is in provider_core.
#include "provider/adoption/adopt.hpp"
#include "provider/host/cancellation.hpp"
#include "provider/host/keep_errno.hpp"
#include "provider/host/log.hpp"

namespace rdmaquota::provider {
namespace {

__attribute__((constructor)) void start() {
    const KeepErrno keep;
    const NoCancellation guard;
    log::remember_standard_error();
    adopt_loaded();
}

}  // namespace

// The only name that is exported, for provider/adoption/stub.c.
extern "C" __attribute__((visibility("default"))) void rdmaquota_adopt(void* stub) {
    const KeepErrno keep;
    const NoCancellation guard;
    adopt_configured(stub);
}

}  // namespace rdmaquota::provider
