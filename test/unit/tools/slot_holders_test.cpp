#include <memory>
#include <thread>

#include <catch2/catch.hpp>

#include <sys/sysmacros.h>

#include <fmt/core.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "shm/ledger/ledger_copy.hpp"
#include "test/processes.hpp"
#include "test/unit/shm/ledger_fixture.hpp"
#include "test/unit/tools/slot_child.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/rdmaquotad/bypass/slot_holders.hpp"

using namespace rdmaquota;

namespace {

std::uint32_t own_pid() { return static_cast<std::uint32_t>(getpid()); }

struct Holding : LedgerFixture {
    Ledger ledger = open();
    SlotHolders holders;
    Holding() { holders.follow({{1, path}}); }

    std::uint64_t claims() {
        LedgerCopy copy;
        REQUIRE(copy.read(path));
        return copy.claims();
    }

    // The slots of process `pid`.
    std::vector<std::uint32_t> of(std::uint32_t pid, std::uint64_t openings) {
        std::vector<std::uint32_t> found;
        const auto held = holders.find({{pid, openings}}, claims());
        if (const auto of_pid = held.find(pid); of_pid != held.end())
            for (const auto& slot : of_pid->second) found.push_back(slot.slot);
        return found;
    }
};

// No two neighbours among its pages have the same rights, so that each is a line of its own in /proc/PID/maps.
class ManyMappings {
public:
    ManyMappings() {
        for (std::size_t i = 0; i < count; i += 2) REQUIRE(mprotect(pages_ + i * page, page, PROT_READ) == 0);
    }
    ManyMappings(const ManyMappings&) = delete;
    ~ManyMappings() { munmap(pages_, count * page); }

private:
    static constexpr std::size_t count = 30'000, page = 4096;
    char* pages_ = static_cast<char*>(mmap(nullptr, count * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
};

}  // namespace

TEST_CASE_METHOD(Holding, "the kernel says which process holds which slot") {
    CHECK(of(own_pid(), 0).empty());
    const auto first = claim(ledger);
    const auto second = claim(ledger);
    CHECK_THAT(of(own_pid(), 0), Catch::UnorderedEquals(std::vector{first.slot(), second.slot()}));
}

TEST_CASE_METHOD(Holding, "a forked child holds its parent's slot too") {
    const auto owner = claim(ledger);
    const auto child = fork_child();
    if (child == 0) {
        pause();
        _exit(0);
    }
    CHECK(of(static_cast<std::uint32_t>(child), 0) == std::vector{owner.slot()});
    kill_child(child);
}

TEST_CASE_METHOD(Holding, "a process whose first thread has ended holds its slot") {
    const auto owner = claim(ledger);
    const auto child = fork_child();
    if (child == 0) {
        std::thread([] { pause(); }).detach();
        syscall(SYS_exit, 0);  // of this thread only
    }
    const auto pid = static_cast<std::uint32_t>(child);
    const auto maps = fmt::format("/proc/{}/maps", pid);
    while (!file_text(maps).empty()) usleep(1000);
    CHECK(of(pid, 0) == std::vector{owner.slot()});
    kill_child(child);
}

TEST_CASE_METHOD(Holding, "what was read counts until devices are opened or closed, or the ledger is another") {
    const auto owner = claim(ledger);
    REQUIRE(of(own_pid(), 0).size() == 1);
    {
        const auto moved = claim(ledger);  // its slot is new, so that all are read again
        CHECK(of(own_pid(), 0).size() == 2);
    }
    CHECK(of(own_pid(), 0).size() == 2);
    CHECK(of(own_pid(), 1).size() == 1);
    REQUIRE(Ledger::replace(path));
    holders.follow({{2, path}});
    CHECK(of(own_pid(), 1).empty());
}

TEST_CASE_METHOD(Holding, "a slot that another process has claimed since is no longer its first holder's") {
    auto let_go = std::make_unique<Owner>(claim(ledger));
    REQUIRE(of(own_pid(), 0).size() == 1);
    const auto slot = let_go->slot();
    ledger.retire(*let_go);
    let_go.reset();
    const SlotChild other(path, {77, 0, 4711, "other"}, "rxe0", {});
    REQUIRE(ledger.owners().front().slot == slot);
    CHECK(of(own_pid(), 0).empty());
}

TEST_CASE_METHOD(Holding, "where maps take long to read, it is said of whom they are too old") {
    const ManyMappings many;
    CHECK(of(own_pid(), 0).empty());
    CHECK(holders.unread().empty());
    const auto owner = claim(ledger);
    CHECK(of(own_pid(), 0).empty());  // it opened nothing since, so that it may have no slot
    CHECK(holders.unread().empty());
    CHECK(of(own_pid(), 1).empty());
    CHECK(holders.unread() == std::set{own_pid()});
    while (of(own_pid(), 1).empty()) usleep(1000);
    CHECK(holders.unread().empty());
}

TEST_CASE("of mappings only those of the ledger's lock files tell a slot") {
    const std::string maps =
        "7f0000000000-7f0000001000 ---s 00410000 00:19 77   /run/rdmaquota/default/owners/01 (deleted)\n"
        "7f0000002000-7f0000003000 ---s 00420000 00:19 78   /tmp/owners/01\n"
        "7f0000004000-7f0000005000 ---s 00430000 00:19 77   /run/rdmaquota/default/ledger\n"
        "7f0000006000-7f0000007000 ---s ffff0000 00:19 77   /run/rdmaquota/default/owners/01\n"
        "7f0000008000-7f0000009000 rw-p 00000000 00:00 0\n"
        "/owners/\n";
    CHECK(slots_in_maps(maps, {{{makedev(0, 0x19), 77}, 3}}) == std::vector{LedgerSlot{3, 65}});
}

TEST_CASE_METHOD(Holding, "slots of several ledgers are told apart") {
    const auto other_path = directory / "other";
    REQUIRE(Ledger::create(other_path, {}));
    auto other = Ledger::open(other_path);
    REQUIRE(other);
    holders.follow({{1, path}, {2, other_path}});
    const auto first = claim(ledger), second = claim(*other);
    const auto held = holders.find({{own_pid(), 0}}, 2);
    REQUIRE(held.contains(own_pid()));
    CHECK_THAT(held.at(own_pid()), Catch::UnorderedEquals(std::vector{LedgerSlot{1, first.slot()}, {2, second.slot()}}));
    CHECK(holders.ledgers_of(own_pid()) == std::set<std::uint32_t>{1, 2});
}
