// spawn COUNT PROGRAM [ARGUMENT...]: starts PROGRAM so many times at once, waits for all, and prints
// the milliseconds it took, those of CPU time, and how many failed.
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "test/bench/measure.hpp"

static double milliseconds(const timeval& time) {
    return static_cast<double>(time.tv_sec) * 1e3 + static_cast<double>(time.tv_usec) / 1e3;
}

int main(int argc, char** argv) {
    using namespace rdmaquota::bench;
    if (argc < 3) give_up("usage: spawn COUNT PROGRAM [ARGUMENT...]");
    const auto count = std::strtoul(argv[1], nullptr, 10);
    unsigned failed = 0;
    const auto start = now_ns();
    for (unsigned long i = 0; i < count; ++i) {
        pid_t child = 0;
        if (posix_spawn(&child, argv[2], nullptr, nullptr, argv + 2, environ) != 0) ++failed;
    }
    int status = 0;
    while (wait(&status) > 0)
        if (status != 0) ++failed;
    print("many.ms", elapsed_ns(start) / 1e6);
    rusage usage{};
    getrusage(RUSAGE_CHILDREN, &usage);
    print("many.cpu_ms", milliseconds(usage.ru_utime) + milliseconds(usage.ru_stime));
    print("many.failed", failed);
}
