#include "shm/death_watch.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include <grp.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "shm/directory_watch.hpp"
#include "test/unit/shm/ledger_fixture.hpp"
#include "test/unit/tools/slot_child.hpp"

using namespace rdmaquota;

namespace {

struct Watching : LedgerFixture {
    DeathWatch watch;

    DeathWatch::Suspects told() { return watch.suspects(path); }
    std::uint64_t suspects() { return told().files; }
    void look() { watch.seen_alive(told(), 0); }
    // So many denials that the watch begins with the next look, if it can.
    void be_denied(std::uint32_t slots = owner_slots) {
        for (unsigned i = 0; i <= DeathWatch::denials_before; ++i) watch.count_denial(slots);
    }
    // Until the kernel's earlier news are old.
    static void settle() { std::this_thread::sleep_for(std::chrono::nanoseconds(DeathWatch::settled) * 11 / 10); }
    void begin() {
        be_denied();
        look();
        settle();
        look();
        REQUIRE(suspects() == 0);
    }
    SlotChild child() { return {path, identity_of_self(), "rxe0", {}}; }
};

bool forbid_nothing() {
    sock_filter allow[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program{1, allow};
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 && prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The descriptor of this process's inotify instance; -1 when there is none.
int descriptor() {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
        std::error_code gone;
        if (std::filesystem::read_symlink(entry, gone) == "anon_inode:inotify") return std::stoi(entry.path().filename());
    }
    return -1;
}

}  // namespace

TEST_CASE_METHOD(Watching, "at first all lock files are suspect, and later those of which an owner ended") {
    for (unsigned i = 0; i < DeathWatch::denials_before; ++i) {
        watch.count_denial(owner_slots);
        CHECK_FALSE(told().watched());
        CHECK(told().files == DeathWatch::all);
        CHECK(descriptor() == -1);
    }
    begin();
    {
        const auto first = child();
        CHECK(suspects() == 0);
    }
    CHECK(suspects() == 1);
    look();
    CHECK(suspects() == 1);  // its lock may outlive the news for a moment
    settle();
    look();
    CHECK(suspects() == 0);
}

TEST_CASE_METHOD(Watching, "an owner that lets go of its slot is told, testing and reaping those who live is not") {
    auto ledger = open();
    begin();
    auto owner = claim(ledger);
    const auto other = child();
    ledger.reap();
    CHECK(suspects() == 0);
    ledger.retire(owner);
    CHECK(suspects() == 1);
}

TEST_CASE_METHOD(Watching, "a file whose dead were not reaped stays suspect") {
    begin();
    { const auto dead = child(); }
    CHECK(suspects() == 1);
    settle();
    watch.seen_alive(told(), 1);
    CHECK(suspects() == 1);
    look();
    CHECK(suspects() == 0);
    watch.seen_alive(told(), 1);
    CHECK(suspects() == 1);
}

TEST_CASE_METHOD(Watching, "all files are looked at again after a while") {
    begin();
    std::this_thread::sleep_for(std::chrono::nanoseconds(DeathWatch::refresh));
    CHECK(suspects() == DeathWatch::all);
    look();
    CHECK(suspects() == 0);
}

TEST_CASE_METHOD(Watching, "a process that is no longer denied gives its instance back") {
    begin();
    watch.end_if_idle();
    CHECK(descriptor() >= 0);
    watch.end_if_idle(0);
    CHECK(descriptor() == -1);
    CHECK_FALSE(told().watched());
    begin();
}

TEST_CASE_METHOD(Watching, "a watch that lasted begins anew at once, another after a while") {
    const bool lasted = GENERATE(true, false);
    if (lasted) begin();
    else be_denied();
    look();
    REQUIRE(told().watched());
    close(descriptor());
    CHECK_FALSE(told().watched());
    CHECK(told().watched() == lasted);
}

TEST_CASE_METHOD(Watching, "threads that share a watch miss no death") {
    begin();
    std::atomic<bool> done = false;
    std::thread other([&] {
        while (!done) {
            watch.count_denial(owner_slots);
            look();
        }
    });
    for (int round = 0; round < 3; ++round) {
        { const auto dead = child(); }
        CHECK((suspects() & 1) == 1);
        settle();
    }
    done = true;
    other.join();
}

TEST_CASE_METHOD(Watching, "a ledger with few slots is not watched") {
    be_denied(DeathWatch::few_slots);
    CHECK_FALSE(told().watched());
    CHECK(descriptor() == -1);
}

TEST_CASE_METHOD(Watching, "the processes of a user take an eighth of the user's instances") {
    const auto seats = std::min(DirectoryWatch::most_instances() / DeathWatch::user_share, DeathWatch::most_seats);
    REQUIRE(seats > 0);
    std::vector<DeathWatch> others(seats);
    std::size_t watching = 0;
    for (auto& other : others) {
        for (unsigned i = 0; i <= DeathWatch::denials_before; ++i) other.count_denial(owner_slots);
        watching += other.suspects(path).watched();
    }
    CHECK(watching == seats);
    be_denied();
    CHECK_FALSE(told().watched());
    others.pop_back();
    Watching next;
    next.path = path;
    next.be_denied();
    CHECK(next.told().watched());
}

TEST_CASE_METHOD(LedgerFixture, "a watch that cannot begin leaves no descriptor") {
    DirectoryWatch watch;
    SECTION("no directory") { CHECK_FALSE(watch.begin((path + "/missing").c_str())); }
    SECTION("a file") { CHECK_FALSE(watch.begin(data_path(path).c_str())); }
    CHECK(descriptor() == -1);
}

TEST_CASE_METHOD(LedgerFixture, "a program under a seccomp filter gets no watch") {
    std::vector<gid_t> groups(GENERATE(0U, 1000U));
    std::iota(groups.begin(), groups.end(), gid_t{4'000'000'000});
    if (!groups.empty() && geteuid() != 0) return;
    ChildProcess filtered([&] {
        if (!groups.empty() && setgroups(groups.size(), groups.data()) != 0) _exit(2);
        if (!forbid_nothing()) _exit(2);
        DirectoryWatch watch;
        _exit(watch.begin(lock_directory(path).c_str()) ? 1 : 0);
    });
    CHECK(filtered.wait() == 0);
}

TEST_CASE_METHOD(LedgerFixture, "one that is dead in the last of all slots keeps no denial from being proved") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const auto limit = tenant_limit(1);
    REQUIRE_FALSE(ledger.charge(owner, device, qps(1), &limit));
    ledger.data().header.slots_used = owner_slots;
    for (int i = 0; i < 10; ++i) {
        ledger.data().states[owner_slots - 1] = SlotState::live;
        const auto denial = ledger.charge(owner, device, qps(1), &limit);
        REQUIRE(denial);
        CHECK(denial->proved);
    }
    CHECK(ledger.owners().size() == 1);
}

TEST_CASE_METHOD(Watching, "a descriptor that the host program closed or reused is noticed") {
    begin();
    const int fd = descriptor();
    REQUIRE(fd >= 0);
    SECTION("closed") {
        close(fd);
        CHECK_FALSE(told().watched());
    }
    SECTION("another watch") {
        const int other = inotify_init1(IN_NONBLOCK);
        REQUIRE(inotify_add_watch(other, directory.path().c_str(), IN_CLOSE_WRITE) >= 0);
        REQUIRE(dup2(other, fd) == fd);
        CHECK_FALSE(told().watched());
        CHECK(close(fd) == 0);
        CHECK(close(other) == 0);
    }
    SECTION("reused") {
        int ends[2];
        REQUIRE(pipe(ends) == 0);
        REQUIRE(dup2(ends[1], fd) == fd);
        CHECK_FALSE(told().watched());
        CHECK(write(fd, "x", 1) == 1);
        close(ends[0]);
        close(ends[1]);
        close(fd);
    }
    CHECK(suspects() == DeathWatch::all);
}

TEST_CASE_METHOD(Watching, "a forked child leaves its parent's news alone and has its own") {
    begin();
    const auto begun = std::chrono::steady_clock::now();
    {
        const auto dead = child();
        ChildProcess heir([&] {
            const bool anew = !told().watched();
            begin();
            _exit(anew && suspects() == 0 ? 0 : 1);
        });
        CHECK(heir.wait() == 0);
    }
    const auto files = suspects();
    const bool refreshed = std::chrono::steady_clock::now() - begun >= std::chrono::nanoseconds(DeathWatch::refresh);
    CHECK((files == 1 || (refreshed && files == DeathWatch::all)));
}

TEST_CASE_METHOD(Watching, "without a descriptor all files are suspect") {
    ChildProcess poor([&] {
        const rlimit none{3, 3};
        setrlimit(RLIMIT_NOFILE, &none);
        be_denied();
        const bool watched = told().watched();
        _exit(watched || suspects() != DeathWatch::all ? 1 : 0);
    });
    CHECK(poor.wait() == 0);
}

TEST_CASE_METHOD(Watching, "what a killed process held is back at once, whenever it was killed") {
    auto ledger = open();
    const auto owner = claim(ledger);
    const auto device = *ledger.device_index("rxe0");
    const auto limit = tenant_limit(1);
    ledger.data().header.slots_used = owner_slots;  // as if many had been there
    for (int round = 0; round < 40; ++round) {
        {
            const SlotChild holder(path, identity_of_self(), "rxe0", qps(1));
            const auto denial = ledger.charge(owner, device, qps(1), &limit);
            REQUIRE(denial);
            REQUIRE(denial->proved);
            if (round % 8 == 0) settle();
        }
        REQUIRE_FALSE(ledger.charge(owner, device, qps(1), &limit));
        ledger.uncharge(owner, device, qps(1));
    }
}
