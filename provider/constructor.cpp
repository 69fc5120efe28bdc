// The provider's entry: libibverbs, a shadow library or a program has loaded it. Everything else is in provider_core.
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
    adopt_providers();
}

}  // namespace
}  // namespace rdmaquota::provider
