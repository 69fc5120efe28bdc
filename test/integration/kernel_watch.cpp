// kernel_watch SECONDS: prints what the sidecar sees of the kernel, ten times a second, and "looked" after each time;
// before it "missed", where the kernel has skipped the program since it was attached.
#include <cstdio>
#include <cstdlib>

#include <fmt/core.h>
#include <unistd.h>

#include "tools/rdmaquotad/kernel/kernel_watch.hpp"

using namespace rdmaquota;

namespace {

void print(const KernelUse& use) {
    fmt::print("pid {} opener {} cgroup {} {}:", use.pid, use.opener, use.cgroup, use.device);
    for (const auto& row : resource_table) {
        const auto i = index(row.id);
        if (use.live[i] || use.created[i])
            fmt::print(" {} {} ({}-{})", row.name, use.live[i], use.created[i], use.destroyed[i]);
    }
    if (use.driver_objects) fmt::print(" driver {}", use.driver_objects);
    fmt::print("\n");
}

}  // namespace

int main(int argc, char** argv) {
    auto watch = KernelWatch::open();
    for (const auto& line : watch.blind()) fmt::print("blind: {}\n", line);
    fmt::print("attached: {}\n", watch.attached());
    for (int i = 0; i < 10 * std::atoi(argv[argc - 1]); ++i) {
        std::fflush(stdout);
        usleep(100'000);
        for (const auto& event : watch.poll())
            fmt::print("{} {}\n", event.kind == KernelEvent::Kind::ended ? "ended" : "opened", event.pid);
        const auto uses = watch.snapshot();
        if (!uses)
            fmt::print("error: {}\n", uses.error());
        else
            for (const auto& use : *uses) print(use);
        if (watch.missed() > 0) fmt::print("missed\n");
        fmt::print("looked\n");
    }
}
