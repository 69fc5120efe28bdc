#include <fstream>

#include <catch2/catch.hpp>
#include <fmt/core.h>

#include "test/unit/temporary_directory.hpp"
#include "tools/common/text/file_text.hpp"
#include "tools/rdmaquotad/kernel/backstop.hpp"

using namespace rdmaquota;

namespace {

void write(const std::string& path, const std::string& text) { std::ofstream(path) << text; }

// A cgroup, in a folder that is the quota directory as well. All values are of the same length, since writing to
// the kernel's file cuts nothing off.
struct Group {
    const TemporaryDirectory directory;
    const std::string max = directory / "rdma.max";
    static constexpr HcaCounts first{30, 200}, second{40, 300};

    Group() { write(max, found()); }
    static std::string found() { return line({50, 500}); }
    static std::string line(HcaCounts bound) {
        return fmt::format("rxe0 hca_handle={} hca_object={}", bound.handle, bound.object);
    }
    Backstop backstop() const { return Backstop(directory.path(), directory.path()); }
};

}  // namespace

// As Documentation/admin-guide/cgroup-v2.rst of Linux 7.2 has it, and kernel/cgroup/rdma.c prints it.
TEST_CASE("the kernel's denials are read from rdma.events") {
    const auto events = parse_hca_counts(
        "mlx4_0 hca_handle.max=5 hca_handle.alloc_fail=3 hca_object.max=2 hca_object.alloc_fail=1\n"
        "rxe0 hca_handle.max=0 hca_handle.alloc_fail=0 hca_object.max=7 hca_object.alloc_fail=0\n",
        ".max");
    CHECK(events.at("mlx4_0") == HcaCounts{5, 2});
    CHECK(events.at("rxe0") == HcaCounts{0, 7});
    CHECK(parse_hca_counts("mlx4_0 hca_handle=2 hca_object=max\n").at("mlx4_0") == HcaCounts{2, unlimited});
}

TEST_CASE("a daemon that is killed between its record and rdma.max loses nothing that was found") {
    const Group group;
    auto killed = group.backstop();
    REQUIRE(killed.set("/", "rxe0", Group::first));
    REQUIRE(killed.set("/", "rxe0", Group::second));
    REQUIRE(file_text(group.max) == Group::line(Group::second));
    write(group.max, Group::line(Group::first));  // as if it had been killed in between

    auto next = group.backstop();
    REQUIRE(next.load());
    SECTION("when the next one goes on") {
        REQUIRE(next.set("/", "rxe0", Group::second));
        CHECK(file_text(group.max) == Group::line(Group::second));
    }
    SECTION("when the next one ends") {}
    next.put_back_all();
    CHECK(file_text(group.max) == Group::found());
}

TEST_CASE("what was found is never loosened") {
    const Group group;
    auto backstop = group.backstop();
    REQUIRE(backstop.set("/", "rxe0", {60, 400}));
    CHECK(file_text(group.max) == Group::line({50, 400}));
    REQUIRE(backstop.set("/", "rxe0", {40, 600}));
    CHECK(file_text(group.max) == Group::line({40, 500}));
    backstop.put_back_all();
    CHECK(file_text(group.max) == Group::found());
}

TEST_CASE("what somebody else wrote to rdma.max stays") {
    const Group group;
    auto backstop = group.backstop();
    REQUIRE(backstop.set("/", "rxe0", Group::first));
    write(group.max, Group::line({70, 700}));
    backstop.put_back_all();
    CHECK(file_text(group.max) == Group::line({70, 700}));
}

TEST_CASE("a record that cannot be understood is moved aside, and not replaced") {
    const Group group;
    REQUIRE(group.backstop().set("/", "rxe0", Group::first));
    const auto text = file_text(group.directory / "backstop") + "rxe1 50\n";
    write(group.directory / "backstop", text);

    auto next = group.backstop();
    const auto loaded = next.load();
    REQUIRE_FALSE(loaded);
    CHECK(file_text(group.directory / "backstop").find("rxe1") == std::string::npos);
    const auto name = loaded.error().find("backstop.unusable.");
    REQUIRE(name != std::string::npos);
    const auto aside = loaded.error().substr(name, loaded.error().find(';') - name);
    REQUIRE(next.set("/", "rxe0", Group::second));
    CHECK(file_text(group.directory / aside) == text);
    next.put_back_all();
    CHECK(file_text(group.max) == Group::found());
}
