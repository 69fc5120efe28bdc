#include "provider/host/process.hpp"

#include <pthread.h>
#include <unistd.h>

namespace rdmaquota::provider {
namespace {

// Written in a forked child only, which has one thread.
unsigned forks = 0;

__attribute__((constructor)) void count_forks() {
    pthread_atfork(nullptr, nullptr, [] { ++forks; });
}

}  // namespace

ProcessId this_process() noexcept { return {getpid(), forks}; }

}  // namespace rdmaquota::provider
