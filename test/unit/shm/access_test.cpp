// Who can open a ledger, by the rights of its files. These give files to other users, which only root can.
#include <catch2/catch.hpp>

#include <filesystem>

#include <grp.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "shm/ledger/access.hpp"
#include "test/processes.hpp"
#include "test/unit/shm/ledger_fixture.hpp"

using namespace rdmaquota;

namespace {

constexpr uid_t member = 1234;
constexpr gid_t members = 2345;

struct Directory {
    TemporaryDirectory directory;
    std::string path = directory / "default";

    Directory() { REQUIRE(::chmod(directory.path().c_str(), 0755) == 0); }

    struct stat status_of(const std::string& file) const {
        struct stat status {};
        REQUIRE(::stat(file.c_str(), &status) == 0);
        return status;
    }
    unsigned mode_of(const std::string& file) const { return status_of(file).st_mode & 07777; }

    // Whether a process of this user, in this group besides its own, can enter itself and charge.
    bool can_charge(uid_t user, gid_t further = 65534) const {
        ChildProcess child([&] {
            if (setgroups(1, &further) != 0 || setgid(65534) != 0 || setuid(user) != 0) _exit(2);
            auto ledger = Ledger::open(path);
            if (!ledger) _exit(3);
            auto owner = ledger->claim(identity_of_self());
            if (!owner) _exit(4);
            const Limits none;
            if (ledger->charge(*owner, *ledger->device_index("rxe0"), qps(1), &none)) _exit(5);
            ledger->retire(*owner);
        });
        const int status = child.wait();
        REQUIRE((status == 0 || (WIFEXITED(status) && WEXITSTATUS(status) == 3)));
        return status == 0;
    }

    // Whether a process of this user can move the ledger away or delete its files.
    bool can_remove(uid_t user) const {
        ChildProcess child([&] {
            if (setgroups(0, nullptr) != 0 || setgid(65534) != 0 || setuid(user) != 0) _exit(2);
            const bool moved = ::rename(path.c_str(), (path + ".away").c_str()) == 0;
            const bool deleted = ::unlink(data_path(path).c_str()) == 0 || ::unlink(lock_path(path, 0).c_str()) == 0;
            if (!moved && !deleted) _exit(3);
        });
        return child.wait() == 0;
    }

    std::string acl_of(const std::string& file) const {
        char bytes[1024];
        const auto size = ::getxattr(file.c_str(), "system.posix_acl_access", bytes, sizeof bytes);
        return size > 0 ? std::string(bytes, static_cast<std::size_t>(size)) : std::string();
    }
};

bool is_root() {
    if (::geteuid() == 0) return true;
    WARN("left out: only root can give files to other users");
    return false;
}

// Whether the file system of tests has access control lists.
bool has_acls() {
    const TemporaryDirectory directory;
    if (::removexattr(directory.path().c_str(), "system.posix_acl_access") == 0 || errno != ENOTSUP) return true;
    WARN("left out: the file system of " << directory.path() << " has no access control lists");
    return false;
}

}  // namespace

TEST_CASE_METHOD(Directory, "a private ledger is its owner's, one for everyone is everyone's, whatever the umask") {
    const auto umask_before = ::umask(0077);
    REQUIRE(Ledger::create(path, {}));
    CHECK(mode_of(path) == 0700);
    CHECK(mode_of(data_path(path)) == 0600);
    REQUIRE(Ledger::create(directory / "shared", LedgerAccess::everyone()));
    ::umask(umask_before);
    for (const auto& file : {data_path(directory / "shared"), lock_path(directory / "shared", owner_slots - 1)})
        CHECK(mode_of(file) == 0666);
    CHECK(mode_of(directory / "shared") == 0755);
    CHECK(mode_of(lock_directory(directory / "shared")) == 0755);
    if (!is_root()) return;
    CHECK_FALSE(can_charge(member));
    path = directory / "shared";
    CHECK(can_charge(member));
    CHECK_FALSE(can_remove(member));
}

TEST_CASE_METHOD(Directory, "further users and groups may charge by an access control list") {
    if (!is_root() || !has_acls()) return;
    LedgerAccess access;
    access.users = {member + 7, member, member};
    access.groups = {members};
    REQUIRE(Ledger::create(path, access));
    CHECK(mode_of(path) == 0755);
    CHECK(can_charge(member));
    CHECK(can_charge(member + 7));
    CHECK(can_charge(member + 1, members));
    CHECK_FALSE(can_charge(member + 1));
    CHECK_FALSE(can_remove(member));
}

TEST_CASE_METHOD(Directory, "the list of the parent directory does not count") {
    if (!is_root() || !has_acls()) return;
    const auto list = rights_for({.mode = 0660, .users = {member}, .groups = {}}).acl;
    REQUIRE(::setxattr(directory.path().c_str(), "system.posix_acl_default", list.data(), list.size(), 0) == 0);
    REQUIRE(Ledger::create(path, {}));
    CHECK(acl_of(data_path(path)).empty());
    CHECK_FALSE(can_charge(member));
}

TEST_CASE_METHOD(Directory, "a new ledger has the rights of the one that it replaces") {
    if (!is_root() || !has_acls()) return;
    LedgerAccess access;
    access.mode = 0640;
    access.users = {member + 1};
    REQUIRE(Ledger::create(path, access));
    auto rights = *rights_of(data_path(path));
    rights.owner = member;
    rights.group = members;
    REQUIRE(set_rights(data_path(path), rights));
    const auto before = status_of(data_path(path));
    const auto list = acl_of(data_path(path));
    CHECK_FALSE(list.empty());

    SECTION("that could be used") { REQUIRE(Ledger::replace(path)); }
    SECTION("that was cut short") {
        REQUIRE(::truncate(data_path(path).c_str(), 100) == 0);
        const auto aside = Ledger::replace_unusable(path, LedgerAccess::everyone());
        REQUIRE(aside);
        CHECK_FALSE(aside->empty());
    }
    for (const auto& file : {data_path(path), lock_path(path, 0)}) {
        const auto now = status_of(file);
        CHECK(now.st_mode == before.st_mode);
        CHECK(now.st_uid == member);
        CHECK(now.st_gid == members);
        CHECK(acl_of(file) == list);
    }
    CHECK(can_charge(member));
    CHECK(can_charge(member + 1));
    CHECK_FALSE(can_charge(member + 2));
}

TEST_CASE_METHOD(Directory, "where there is nothing to copy, a new ledger has the rights that were asked for") {
    REQUIRE(Ledger::create(path, {}));
    SECTION("no file") { std::filesystem::remove(data_path(path)); }
    SECTION("no regular file") {
        std::filesystem::remove(data_path(path));
        std::filesystem::create_symlink("/dev/null", data_path(path));
    }
    const auto aside = Ledger::replace_unusable(path, {.mode = 0620, .users = {}, .groups = {}});
    REQUIRE(aside);
    CHECK_FALSE(aside->empty());
    CHECK(mode_of(data_path(path)) == 0620);
}
