// Files that are cut short while they are mapped. Each case that could end the process runs in a child.
#include <catch2/catch.hpp>

#include <csignal>
#include <cstring>
#include <functional>
#include <thread>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "shm/ledger/ledger_file.hpp"
#include "shm/mapping.hpp"
#include "shm/paths.hpp"
#include "shm/policy/limits_writer.hpp"
#include "test/processes.hpp"
#include "test/unit/shm/ledger_fixture.hpp"

using namespace rdmaquota;

namespace {

// How a child ended that runs `body`: its exit status, or minus the signal.
int outcome(const std::function<int()>& body) {
    const pid_t child = fork_child();
    if (child == 0) _exit(body());
    const int status = wait_for_child(child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

// A page of a file that has been cut to nothing, and is not ours.
volatile char* foreign_page(const std::string& path) {
    const int fd = open(path.c_str(), O_RDWR | O_CREAT, 0600);
    if (fd < 0 || ftruncate(fd, 4096) != 0) _exit(99);
    void* page = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, fd, 0);
    if (page == MAP_FAILED || ftruncate(fd, 0) != 0) _exit(99);
    return static_cast<volatile char*>(page);
}

void leave_with_42(int) { _exit(42); }

}  // namespace

TEST_CASE("a ledger made on a full file system is an error, not deadly") {
    if (geteuid() != 0) return;  // mounts
    const TemporaryDirectory directory;
    CHECK(outcome([&] {
              const auto* place = directory.path().c_str();
              if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0 ||
                  mount("small", place, "tmpfs", 0, "size=4k") != 0)
                  return 1;
              const auto made = create_ledger_file(directory / "data");
              if (made || made.error().find("is full") == std::string::npos) return 2;
              return access((directory / "data").c_str(), F_OK) == 0 ? 3 : 0;
          }) == 0);
}

TEST_CASE_METHOD(LedgerFixture, "a ledger that is cut short under a charge is lost, not deadly") {
    CHECK(outcome([&] {
              auto ledger = Ledger::open(path);
              auto owner = ledger->claim(identity_of_self());
              const auto device = *ledger->device_index("rxe0");
              const auto one = Amounts{}.add(Resource::qp, 1);
              Limits limit;
              limit.tenant = 2;
              if (ledger->charge(*owner, device, one, &limit) || ledger->lost()) return 1;
              if (truncate(data_path(path).c_str(), 0) != 0) return 2;
              ledger->charge(*owner, device, one, &limit);
              if (!ledger->lost()) return 3;
              for (int i = 0; i < 3; ++i) ledger->charge(*owner, device, one, &limit);
              ledger->uncharge(*owner, device, one);
              ledger->reap();
              ledger->reconcile(device, Resource::qp);
              ledger->retire(*owner);
              return ledger->events().size() <= event_slots ? 0 : 4;
          }) == 0);
}

TEST_CASE_METHOD(LedgerFixture, "a lost ledger's path can hold a new one") {
    REQUIRE(truncate(data_path(path).c_str(), 100) == 0);
    const auto aside = Ledger::replace_unusable(path, {});
    REQUIRE(aside);
    CHECK_FALSE(aside.value().empty());
    REQUIRE(truncate(data_path(path).c_str(), 100) == 0);
    const auto again = Ledger::replace_unusable(path, {});  // within the same second
    REQUIRE(again);
    CHECK(again.value() != aside.value());
    CHECK(Ledger::open(path));
    const auto usable = Ledger::replace_unusable(path, {});
    REQUIRE(usable);
    CHECK(usable.value().empty());
    Ledger::remove(*aside);
    CHECK(access(aside->c_str(), F_OK) != 0);
    CHECK(access(again->c_str(), F_OK) == 0);
}

TEST_CASE("a file of limits that is cut short keeps them and counts as superseded") {
    const TemporaryDirectory directory;
    TenantLimits limits;
    row_for(limits.limits[index(Scope::tenant)], "*")[index(Resource::qp)] = 7;
    REQUIRE(LimitsWriter::publish(directory / "policy", limits));
    CHECK(outcome([&] {
              auto segment = LimitsSegment::open(directory / "policy");
              if (truncate((directory / "policy").c_str(), 0) != 0) return 1;
              if (segment->limit(Scope::tenant, "rxe0", Resource::qp) != 7) return 2;
              return segment->superseded() && segment->generation() == LimitsSegment::lost_generation ? 0 : 3;
          }) == 0);
}

TEST_CASE_METHOD(LedgerFixture, "a thread that blocks SIGBUS survives a cut, too") {
    CHECK(outcome([&] {
              auto ledger = Ledger::open(path);
              if (truncate(data_path(path).c_str(), 0) != 0) return 1;
              sigset_t all;
              sigfillset(&all);
              std::thread([&] {
                  pthread_sigmask(SIG_SETMASK, &all, nullptr);
                  const BusErrorsAllowed allowed;
                  ledger->reap();
              }).join();
              return ledger->lost() ? 0 : 2;
          }) == 0);
    CHECK(outcome([&] {
              sigset_t all, now;
              sigfillset(&all);
              pthread_sigmask(SIG_SETMASK, &all, nullptr);
              for (int i = 0; i < 2; ++i) {
                  const BusErrorsAllowed allowed;
              }
              pthread_sigmask(SIG_SETMASK, nullptr, &now);
              return sigismember(&now, SIGBUS) == 1 ? 0 : 1;
          }) == 0);
}

TEST_CASE_METHOD(LedgerFixture, "care for SIGBUS nests, and a thread may block SIGBUS at any time") {
    const auto survives = [&](auto prepare) {
        return outcome([&] {
            auto ledger = Ledger::open(path);
            prepare();
            if (truncate(data_path(path).c_str(), 0) != 0) return 1;
            {
                const BusErrorsAllowed allowed;
                ledger->reap();
            }
            return ledger->lost() ? 0 : 2;
        });
    };
    const auto block = [] {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, nullptr);
    };
    SECTION("a thread that blocks it survives after nested uses") {
        CHECK(survives([&] {
                  block();
                  const BusErrorsAllowed outer;
                  const BusErrorsAllowed inner;
              }) == 0);
    }
    SECTION("and one that has blocked it since its first use") {
        CHECK(survives([&] {
                  { const BusErrorsAllowed allowed; }
                  block();
              }) == 0);
    }
    CHECK(outcome([&] {
              block();
              {
                  const BusErrorsAllowed outer;
                  { const BusErrorsAllowed inner; }
                  sigset_t within;
                  pthread_sigmask(SIG_SETMASK, nullptr, &within);
                  if (sigismember(&within, SIGBUS) != 0) return 1;
              }
              sigset_t after;
              pthread_sigmask(SIG_SETMASK, nullptr, &after);
              return sigismember(&after, SIGBUS) == 1 ? 0 : 2;
          }) == 0);
}

// Handlers are chained once per process, so each of these runs in a process of its own, started anew.
namespace {

int outcome_of(const char* hidden_case) {
    return outcome([&] {
        execl("/proc/self/exe", "unit_tests", hidden_case, nullptr);
        return 98;
    });
}

void open_a_ledger() {
    static const LedgerFixture fixture;
    static const auto ledger = Ledger::open(fixture.path);
    if (!ledger) _exit(97);
}

}  // namespace

TEST_CASE("bus error: by default", "[.]") {
    open_a_ledger();
    const TemporaryDirectory directory;
    static_cast<void>(*foreign_page(directory / "page"));
}

TEST_CASE("bus error: handled", "[.]") {
    signal(SIGBUS, leave_with_42);
    open_a_ledger();
    const TemporaryDirectory directory;
    static_cast<void>(*foreign_page(directory / "page"));
}

TEST_CASE("bus error: handled once", "[.]") {
    struct sigaction once {};
    once.sa_handler = [](int) {};  // comes back to the same fault
    once.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(SIGBUS, &once, nullptr);
    open_a_ledger();
    const TemporaryDirectory directory;
    static_cast<void>(*foreign_page(directory / "page"));
}

TEST_CASE("bus error: sent", "[.]") {
    open_a_ledger();
    raise(SIGBUS);
}

TEST_CASE("bus error: sent and ignored", "[.]") {
    signal(SIGBUS, SIG_IGN);
    open_a_ledger();
    raise(SIGBUS);
    _exit(43);
}

TEST_CASE("other bus errors end as they did before") {
    CHECK(outcome_of("bus error: by default") == -SIGBUS);
    CHECK(outcome_of("bus error: handled") == 42);
    CHECK(outcome_of("bus error: handled once") == -SIGBUS);
    CHECK(outcome_of("bus error: sent") == -SIGBUS);
    CHECK(outcome_of("bus error: sent and ignored") == 43);
}
