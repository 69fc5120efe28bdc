// Where the provider begins: libibverbs, a shadow library or a program has loaded it. All else is in provider_core.
#include "provider/adoption/adopt.hpp"
#include "provider/host/log.hpp"
#include "provider/ops/wrap.hpp"

namespace rdmaquota::provider {
namespace {

__attribute__((constructor)) void start() {
    const KeepErrno keep;
    log::remember_standard_error();
    adopt_providers();
}

}  // namespace
}  // namespace rdmaquota::provider
