// Host programs close descriptors, lower limits and live in namespaces; their accounts stay true.
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <stdexcept>
#include <system_error>

#include <fcntl.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fmt/core.h>

#include "storm.hpp"
#include "test/processes.hpp"
#include "test/waiting.hpp"

namespace storm {
namespace {

constexpr std::uint64_t limit = 4;

// Starts a process that opens the ledger, charges 2 of 4, calls `deed` and sleeps. Returns when it has charged.
pid_t holder(const Scene& scene, const std::function<void()>& deed) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe2");
    const pid_t child = spawn([&] {
        auto ledger = Ledger::open(scene.path());
        auto owner = ledger->claim(identity_of_self());
        if (!owner) _exit(1);
        if (ledger->charge(*owner, *ledger->device_index("rxe0"), two_resources(2), limits_of(limit))) _exit(1);
        if (write(ends[1], "r", 1) != 1) _exit(1);
        deed();
        pause();
    });
    close(ends[1]);
    char ready = 0;
    const bool charged = read(ends[0], &ready, 1) == 1;
    close(ends[0]);
    if (!charged) throw std::runtime_error("a process could not charge the ledger");
    usleep(20'000);
    return child;
}

void keeps_its_usage(const char* what, const std::function<void()>& deed) {
    Scene scene;
    auto ledger = scene.open();
    const auto device = *ledger.device_index("rxe0");
    const pid_t child = holder(scene, deed);
    ledger.reap();
    const auto while_alive = ledger.tenant_usage(device, Resource::qp);
    reap_child(child);
    std::string seen;
    const bool room = has_room(ledger, limit, seen);
    check(while_alive == 2 && room, what, fmt::format("{} in use while it lived; then: {}", while_alive, seen));
}

void reuse_descriptors() {
    syscall(SYS_close_range, 3U, ~0U, 0U);
    for (int i = 0; i < 64; ++i)
        if (open("/dev/null", O_RDWR) < 0) return;
}

void lower_descriptor_limit() {
    const rlimit none{3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
}

bool has_ended(pid_t child) {
    siginfo_t info{};
    return waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0;
}

// The only child of a process; 0 when there is none.
pid_t inner_of(pid_t outer) {
    pid_t child = 0;
    FILE* file = std::fopen(fmt::format("/proc/{0}/task/{0}/children", outer).c_str(), "re");
    if (file && std::fscanf(file, "%d", &child) != 1) child = 0;
    if (file) std::fclose(file);
    return child;
}

// Moves this process's next children into namespaces of their own; by root's right where user namespaces are refused,
// as in a chroot. Ends the process with errno on failure.
void enter_namespaces() {
    constexpr int own = CLONE_NEWPID | CLONE_NEWNS;
    if (unshare(CLONE_NEWUSER | own) != 0 && unshare(own) != 0) _exit(errno);
}

// A process in namespaces of its own, where its pid is 1.
void in_namespaces() {
    constexpr auto what = "an owner in a pid namespace of its own is counted, whatever its pid";
    Scene scene;
    auto ledger = scene.open();
    const auto device = *ledger.device_index("rxe0");
    const pid_t outer = spawn([&] {
        enter_namespaces();
        holder(scene, [] {});  // the first process of the new namespace; its end ends that
        pause();
    });
    eventually([&] { return ledger.tenant_usage(device, Resource::qp) == 2 || has_ended(outer); });
    const auto while_alive = ledger.tenant_usage(device, Resource::qp);
    const auto owners = ledger.owners();
    const pid_t inner = inner_of(outer);
    if (inner == 0) {
        const int status = kill_child(outer);
        return check(false, what,
                     fmt::format("no namespaces: {}", WIFEXITED(status) ? std::strerror(WEXITSTATUS(status))
                                                                        : "no process started in them"));
    }
    const bool counted = while_alive == 2 && owners.size() == 1 && owners[0].identity.pid == 1;
    check(counted && ledger.reap() == 0, what, fmt::format("{} in use, {} owners", while_alive, owners.size()));
    signal_process(inner, SIGKILL);
    eventually([&] { return ledger.reap() != 0; });
    std::string seen;
    check(has_room(ledger, limit, seen), "and reaped from outside when it dies", seen);
    reap_child(outer);
}

void without_descriptors() {
    Scene scene;
    const int outcome =
        await_child(spawn([&] {
                        auto ledger = Ledger::open(scene.path());
                        lower_descriptor_limit();
                        if (ledger->claim(identity_of_self())) _exit(1);
                        if (Ledger::open(scene.path())) _exit(1);
                        if (Ledger::open(scene.path()).error().find("Too many open files") == std::string::npos)
                            _exit(1);
                    }),
                    5);
    check(outcome == 0, "a program without a free descriptor gets an error and goes on", fmt::format("{}", outcome));
}

}  // namespace

void surroundings_storm() {
    keeps_its_usage("a program that sleeps keeps its usage until it dies", [] {});
    keeps_its_usage("one that closes every descriptor and reuses the numbers, too", reuse_descriptors);
    keeps_its_usage("one that lowers its descriptor limit, too", lower_descriptor_limit);
    without_descriptors();
    in_namespaces();
}

}  // namespace storm
