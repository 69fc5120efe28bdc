// Writers of limits in several processes, which race for rows, for the file and for the lock.
#include <catch2/catch.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <new>

#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "shm/policy/limits_writer.hpp"
#include "test/processes.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace std::chrono_literals;

namespace {

struct Fixture {
    TemporaryDirectory directory;
    std::string path = directory / "limits";
    Fixture() { REQUIRE(LimitsWriter::publish(path, TenantLimits{})); }

    std::uint64_t limit(std::string_view device) const {
        return LimitsSegment::open(path)->limit(Scope::tenant, device, Resource::qp);
    }
};

// Shared by the processes of a race, which start each round together.
struct Rounds {
    std::atomic<int> started{0};
    std::array<std::atomic<int>, 2> finished{};

    static Rounds& shared() {
        void* memory = mmap(nullptr, sizeof(Rounds), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
        REQUIRE(memory != MAP_FAILED);
        return *new (memory) Rounds;
    }
    void start(int round) { started = round; }
    void wait_for_start(int round) const {
        while (started < round) sched_yield();
    }
    // False when they take longer than 10 s: one has failed.
    bool wait_for_all(int round) const {
        const auto deadline = std::chrono::steady_clock::now() + 10s;
        for (const auto& one : finished)
            while (one < round) {
                if (std::chrono::steady_clock::now() > deadline) return false;
                sched_yield();
            }
        return true;
    }
};

constexpr int rounds = 3000;

}  // namespace

TEST_CASE_METHOD(Fixture, "two processes that set limits of new devices at once lose neither") {
    auto& race = Rounds::shared();
    const auto run = [&](std::size_t which) {
        const auto* device = which == 0 ? "rxe0" : "mlx5_0";
        for (int round = 1; round <= rounds; ++round) {
            race.wait_for_start(round);
            if (!LimitsWriter::open(path)->set(Scope::tenant, device, Resource::qp, 7)) _exit(1);
            race.finished[which] = round;
        }
    };
    ChildProcess first([&] { run(0); });
    ChildProcess second([&] { run(1); });
    int lost = 0;
    for (int round = 1; round <= rounds; ++round) {
        REQUIRE(LimitsWriter::publish(path, TenantLimits{}));
        race.start(round);
        REQUIRE(race.wait_for_all(round));
        if (limit("rxe0") != 7 || limit("mlx5_0") != 7) ++lost;
    }
    CHECK(lost == 0);
    CHECK(first.wait() == 0);
    CHECK(second.wait() == 0);
    munmap(&race, sizeof race);
}

TEST_CASE_METHOD(Fixture, "no policy takes the place of one that is being changed") {
    auto& race = Rounds::shared();
    ChildProcess publisher([&] {
        while (race.started == 0)
            if (!LimitsWriter::publish(path, TenantLimits{})) _exit(1);
    });
    int lost = 0;
    for (int round = 1; round <= rounds; ++round) {
        auto writer = LimitsWriter::open(path);
        REQUIRE(writer);
        REQUIRE(writer->set(Scope::tenant, "rxe0", Resource::qp, static_cast<std::uint64_t>(round)));
        if (limit("rxe0") != static_cast<std::uint64_t>(round) || writer->limits().superseded()) ++lost;
    }
    race.start(1);
    CHECK(lost == 0);
    CHECK(publisher.wait() == 0);
    munmap(&race, sizeof race);
}

TEST_CASE_METHOD(Fixture, "a run of settings is made as a whole or not at all") {
    for (int i = 0; i < 66; ++i)
        REQUIRE(LimitsWriter::open(path)->set(Scope::tenant, "d" + std::to_string(i), Resource::qp, 1));
    const auto before = LimitsSegment::open(path)->generation();
    const Setting settings[] = {{Resource::qp, 2}, {Resource::cq, 3}};
    CHECK_FALSE(LimitsWriter::open(path)->set(Scope::tenant, "one more", settings));
    CHECK_FALSE(LimitsWriter::open(path)->set(Scope::tenant, "one/more/x", settings));
    CHECK(LimitsSegment::open(path)->generation() == before);
    REQUIRE(LimitsWriter::open(path)->set(Scope::tenant, "d65", settings));
    CHECK(LimitsSegment::open(path)->limit(Scope::tenant, "d65", Resource::cq) == 3);
    CHECK(LimitsSegment::open(path)->generation() == before + 1);
}

TEST_CASE_METHOD(Fixture, "a writer that was killed or removed its lock file stops nobody") {
    auto& race = Rounds::shared();
    ChildProcess holder([&] {
        const auto writer = LimitsWriter::open(path);
        if (!writer) _exit(1);
        race.start(1);
        for (;;) pause();
    });
    race.wait_for_start(1);
    const auto refused = LimitsWriter::open(path, 20ms);
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error(), Catch::Contains(path + ".lock") && Catch::Contains("for 20 ms"));
    CHECK(LimitsSegment::open(path));  // readers do not wait
    SECTION("killed") { holder.end(); }
    SECTION("removed") { REQUIRE(unlink((path + ".lock").c_str()) == 0); }
    CHECK(LimitsWriter::open(path, 20ms));
    munmap(&race, sizeof race);
}

TEST_CASE_METHOD(Fixture, "the next writer completes what a killed publication has begun") {
    const auto reader = LimitsSegment::open(path);
    REQUIRE(reader);
    const auto old = path + ".old";
    REQUIRE(link(path.c_str(), old.c_str()) == 0);
    SECTION("before the policy was replaced") {
        REQUIRE(LimitsWriter::open(path));
        CHECK_FALSE(reader->superseded());
    }
    SECTION("before the old one was marked") {
        REQUIRE(LimitsWriter::publish(directory / "next", TenantLimits{}));
        REQUIRE(rename((directory / "next").c_str(), path.c_str()) == 0);
        CHECK_FALSE(reader->superseded());
        SECTION("by a change") { REQUIRE(LimitsWriter::open(path)); }
        SECTION("by another publication") { REQUIRE(LimitsWriter::publish(path, TenantLimits{})); }
        CHECK(reader->superseded());
    }
    CHECK(access(old.c_str(), F_OK) != 0);
    CHECK_FALSE(LimitsSegment::open(path)->superseded());
}

TEST_CASE("a change where there is no policy says how to get one") {
    const TemporaryDirectory directory;
    const auto path = directory / GENERATE("limits", "missing/limits");
    CHECK_THAT(LimitsWriter::open(path).error(), Catch::Contains(path) && Catch::Contains("rdmaquota reload"));
}

TEST_CASE_METHOD(Fixture, "only the owner can open the lock file, so no reader can hold it") {
    struct stat status {};
    REQUIRE(stat((path + ".lock").c_str(), &status) == 0);
    CHECK((status.st_mode & 07777) == 0600);
    CHECK(status.st_uid == geteuid());
}

namespace {

// As an administrator and the sidecar change them.
struct Change : Fixture {
    Change() {
        TenantLimits limits;
        row_for(limits.limits[index(Scope::tenant)], "rxe0")[index(Resource::qp)] = 20;
        row_for(limits.limits[index(Scope::process)], "*")[index(Resource::cq)] = 5;
        row_for(limits.for_everyone, "*")[index(Resource::qp)] = 9;
        row_for(limits.for_everyone, "*")[index(Resource::cq)] = 8;
        REQUIRE(LimitsWriter::publish(path, limits));
    }
    LimitsWriter writer() const {
        auto opened = LimitsWriter::open(path);
        REQUIRE(opened);
        return std::move(*opened);
    }
    LimitsSegment all() const { return std::move(*LimitsSegment::open(path, LimitsSegment::Parts::all)); }
    std::uint64_t in_force() const { return all().limit(Scope::tenant, "rxe0", Resource::qp); }
    std::uint64_t configured() const { return all().configured(Scope::tenant, "rxe0", Resource::qp); }
    void hold(std::uint64_t limit) const {
        REQUIRE(writer().hold(Scope::tenant, "rxe0", Resource::qp, limit, Reason::rule, "memory is scarce"));
    }
};

}  // namespace

TEST_CASE_METHOD(Change, "unset brings back what the file said") {
    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::qp, 7));
    CHECK(in_force() == 7);
    const Resource resources[] = {Resource::qp};
    REQUIRE(writer().unset(Scope::tenant, "rxe0", resources));
    CHECK(in_force() == 20);
    CHECK(configured() == 20);
    REQUIRE(writer().unset(Scope::tenant, "mlx5_0", resources));  // nothing was set there
}

TEST_CASE_METHOD(Change, "a limit that is held leaves what is configured alone, and says why") {
    hold(10);
    CHECK(in_force() == 10);
    CHECK(configured() == 20);
    CHECK(all().reason(Scope::tenant, "rxe0", Resource::qp) == Reason::rule);
    const auto held = held_limits(all());
    REQUIRE(held.size() == 1);
    CHECK(held[0].device == "rxe0");
    CHECK(held[0].limit == 10);
    CHECK(held[0].configured == 20);
    CHECK(held[0].why == "memory is scarce");
    writer().release(Scope::tenant, "rxe0", Resource::qp);
    CHECK(in_force() == 20);
    CHECK(held_limits(all()).empty());
}

TEST_CASE_METHOD(Change, "a limit that is set while another is held comes into force when that ends") {
    hold(10);
    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::qp, 30));
    CHECK(in_force() == 10);
    CHECK(configured() == 30);
    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::qp, 4));
    CHECK(in_force() == 4);  // never above what is configured
    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::qp, 15));
    writer().release(Scope::tenant, "rxe0", Resource::qp);
    CHECK(in_force() == 15);
}

TEST_CASE_METHOD(Change, "a limit that is held above what is configured stays above") {
    hold(40);
    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::qp, 30));
    CHECK(in_force() == 40);
    writer().release(Scope::tenant, "rxe0", Resource::qp);
    CHECK(in_force() == 30);
}

TEST_CASE_METHOD(Change, "a limit for everyone changes what the tenant's own tables do not say") {
    const Setting settings[] = {{Resource::qp, 1}, {Resource::cq, 1}};
    REQUIRE(writer().set(Scope::process, "*", settings, LimitsWriter::Whose::everyone));
    CHECK(all().limit(Scope::process, "rxe0", Resource::qp) == 1);
    CHECK(all().limit(Scope::process, "rxe0", Resource::cq) == 5);
    REQUIRE(writer().set(Scope::process, "*", Resource::qp, 3));  // the tenant's own from now on
    REQUIRE(writer().set(Scope::process, "*", settings, LimitsWriter::Whose::everyone));
    CHECK(all().limit(Scope::process, "rxe0", Resource::qp) == 3);
    const Resource resources[] = {Resource::qp};
    REQUIRE(writer().unset(Scope::process, "*", resources));
    CHECK(all().limit(Scope::process, "rxe0", Resource::qp) == 9);
    REQUIRE(writer().set(Scope::process, "*", settings, LimitsWriter::Whose::everyone));
    CHECK(all().limit(Scope::process, "rxe0", Resource::qp) == 1);
}

TEST_CASE_METHOD(Change, "a new row keeps all that was there") {
    hold(10);
    REQUIRE(writer().set(Scope::process, "*", Resource::qp, 3));
    const auto before = LimitsSegment::open(path);
    REQUIRE(writer().set(Scope::tenant, "mlx5_0", Resource::qp, 1));
    CHECK(before->superseded());
    CHECK(in_force() == 10);
    CHECK(configured() == 20);
    CHECK(held_limits(all()).size() == 1);
    const auto own = configured_limits(all());
    CHECK(find_row(own[index(Scope::process)], "*")->at(index(Resource::qp)) == 3);
    CHECK(find_row(own[index(Scope::process)], "*")->at(index(Resource::cq)) == 5);
    CHECK(find_row(own[index(Scope::tenant)], "mlx5_0")->at(index(Resource::qp)) == 1);
    const Resource resources[] = {Resource::qp};
    REQUIRE(writer().unset(Scope::process, "*", resources));
    CHECK(all().limit(Scope::process, "rxe0", Resource::qp) == 9);
}

TEST_CASE_METHOD(Change, "a limit that is held is never above what \"*\" configures for its device") {
    REQUIRE(writer().set(Scope::tenant, "*", Resource::cq, 30));
    const auto hold_cq = [&](std::string_view device, std::uint64_t limit) {
        REQUIRE(writer().hold(Scope::tenant, device, Resource::cq, limit, Reason::rule, ""));
    };
    const auto cqs = [&](std::string_view device) { return all().limit(Scope::tenant, device, Resource::cq); };
    hold_cq("rxe0", 10);
    hold_cq("above", 40);
    hold_cq("total", 25);
    REQUIRE(writer().set(Scope::tenant, "*", Resource::cq, 5));
    CHECK(cqs("rxe0") == 5);
    CHECK(cqs("above") == 40);
    CHECK(cqs("total") == 25);  // "*" does not stand for it
    writer().release(Scope::tenant, "rxe0", Resource::cq);
    CHECK(cqs("rxe0") == 5);

    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::cq, 20));
    hold_cq("rxe0", 10);
    const Resource resources[] = {Resource::cq};
    REQUIRE(writer().unset(Scope::tenant, "rxe0", resources));
    CHECK(cqs("rxe0") == 5);
    REQUIRE(writer().unset(Scope::tenant, "*", resources));
    CHECK(cqs("rxe0") == 5);
    writer().release(Scope::tenant, "rxe0", Resource::cq);
    CHECK(cqs("rxe0") == unlimited);
}

TEST_CASE_METHOD(Change, "a share is kept when limits are published, what a rule holds is not") {
    const LimitsWriter::Grant shares[] = {{"rxe0", Resource::qp, 6}, {"mlx5_0", Resource::mr, 3}};
    const bool granted = GENERATE(true, false);
    if (granted) REQUIRE(writer().grant(shares, "why"));
    else
        for (const auto& [device, resource, amount] : shares)
            REQUIRE(writer().hold(Scope::tenant, device, resource, amount, Reason::rule, "why"));
    TenantLimits limits;
    row_for(limits.limits[index(Scope::tenant)], "rxe0")[index(Resource::qp)] = 8;
    REQUIRE(LimitsWriter::publish(path, limits));
    CHECK(configured() == 8);
    CHECK(in_force() == (granted ? 6 : 8));
    const auto held = held_limits(all());
    REQUIRE(held.size() == (granted ? 2U : 0U));
    if (held.empty()) return;
    CHECK(held[0].reason == Reason::grant);
    CHECK(held[1].limit == 3);
    CHECK(held[1].configured == unlimited);
}

TEST_CASE_METHOD(Change, "nothing in effect is above the share, and what is configured is not forgotten") {
    const auto share = [&](std::uint64_t amount) {
        const LimitsWriter::Grant grant[] = {{"rxe0", Resource::qp, amount}};
        REQUIRE(writer().grant(grant, "its share"));
    };
    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::qp, 20));
    share(30);  // more than is configured
    CHECK(in_force() == 20);
    CHECK(all().reason(Scope::tenant, "rxe0", Resource::qp) == Reason::configured);
    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::qp, 40));
    CHECK(in_force() == 30);
    CHECK(all().reason(Scope::tenant, "rxe0", Resource::qp) == Reason::grant);
    hold(35);
    CHECK(in_force() == 30);
    hold(10);
    share(20);
    CHECK(in_force() == 10);
    share(5);
    CHECK(in_force() == 5);
    writer().release(Scope::tenant, "rxe0", Resource::qp);
    CHECK(in_force() == 5);
    CHECK(all().reason(Scope::tenant, "rxe0", Resource::qp) == Reason::grant);
    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::qp, 3));
    CHECK(in_force() == 3);
    share(unset);
    REQUIRE(writer().set(Scope::tenant, "rxe0", Resource::qp, 50));
    CHECK(in_force() == 50);
}

TEST_CASE_METHOD(Change, "a share of a device without a limit of its own follows the row for each device") {
    REQUIRE(writer().set(Scope::tenant, "*", Resource::cq, 100));
    const LimitsWriter::Grant grant[] = {{"mlx5_0", Resource::cq, 40}};
    REQUIRE(writer().grant(grant, ""));
    const auto in_force_there = [&] { return all().limit(Scope::tenant, "mlx5_0", Resource::cq); };
    CHECK(in_force_there() == 40);
    REQUIRE(writer().set(Scope::tenant, "*", Resource::cq, 30));
    CHECK(in_force_there() == 30);
    REQUIRE(writer().set(Scope::tenant, "*", Resource::cq, 200));
    CHECK(in_force_there() == 40);
    CHECK(all().limit(Scope::tenant, "rxe1", Resource::cq) == 200);
}

TEST_CASE_METHOD(Change, "guarantees and soft limits come from the file, are set, and come back") {
    TenantLimits limits;
    row_for(limits.guarantees, "*")[index(Resource::qp)] = 5;
    row_for(limits.softs, "rxe0")[index(Resource::qp)] = 7;
    REQUIRE(LimitsWriter::publish(path, limits));
    const auto guarantee = [&] { return all().guarantee("rxe0", Resource::qp); };
    const auto soft = [&] { return all().soft("rxe0", Resource::qp); };
    CHECK(guarantee() == 5);
    CHECK(soft() == 7);
    CHECK(all().soft("mlx5_0", Resource::qp) == unlimited);
    const Setting setting[] = {{Resource::qp, 3}};
    REQUIRE(writer().set_part(LimitPart::guarantee, "rxe0", setting));
    REQUIRE(writer().set_part(LimitPart::soft, "rxe0", setting));
    CHECK(guarantee() == 3);
    CHECK(soft() == 3);
    const Resource resources[] = {Resource::qp};
    REQUIRE(writer().unset_part(LimitPart::guarantee, "rxe0", resources));
    REQUIRE(writer().unset_part(LimitPart::soft, "rxe0", resources));
    CHECK(guarantee() == 5);
    CHECK(soft() == 7);
}

TEST_CASE_METHOD(Change, "every change is seen by the generation, and long words are cut") {
    const auto opened = LimitsSegment::open(path, LimitsSegment::Parts::all);
    REQUIRE(opened);
    auto change = writer();
    const Resource resources[] = {Resource::qp};
    REQUIRE(change.hold(Scope::tenant, "rxe0", Resource::qp, 10, Reason::rule, std::string(200, 'y')));
    CHECK(opened->generation() == 2);
    CHECK(held_limits(*opened)[0].why == std::string(63, 'y'));
    REQUIRE(change.hold(Scope::tenant, "rxe0", Resource::qp, 9, Reason::rule, "z"));
    CHECK(opened->generation() == 3);
    CHECK(held_limits(*opened)[0].why == "z");
    change.release(Scope::tenant, "rxe0", Resource::qp);
    CHECK(opened->generation() == 4);
    change.release(Scope::tenant, "rxe0", Resource::qp);  // nothing is held
    change.release(Scope::tenant, "rxe9", Resource::qp);
    CHECK(opened->generation() == 4);
    REQUIRE(change.unset(Scope::tenant, "rxe0", resources));
    CHECK(opened->generation() == 5);
    CHECK_FALSE(change.hold(Scope::tenant, "no/device", Resource::qp, 1, Reason::rule, ""));
    CHECK_FALSE(change.unset(Scope::tenant, "no/device", resources));
    CHECK(opened->generation() == 5);
    CHECK_FALSE(opened->superseded());
}

TEST_CASE_METHOD(Fixture, "a percentage is of what the file knows of the device, and follows that") {
    auto writer = LimitsWriter::open(path);
    REQUIRE(writer);
    REQUIRE(writer->set(Scope::tenant, "*", Resource::qp, percentage(250)));
    const Setting half{Resource::qp, percentage(500)};
    REQUIRE(writer->set_part(LimitPart::soft, "*", std::span(&half, 1)));
    REQUIRE(writer->set_part(LimitPart::guarantee, "*", std::span(&half, 1)));
    const auto limits = [&]() -> const LimitsSegment& { return writer->limits(); };
    CHECK(limits().has_percentages());
    CHECK(limits().limit(Scope::tenant, "rxe0", Resource::qp) == unlimited);
    CHECK(limits().guarantee("rxe0", Resource::qp) == 0);
    auto capacity = unset_row();
    capacity[index(Resource::qp)] = 1000;
    REQUIRE(writer->set_capacity("rxe0", capacity));
    CHECK(limits().limit(Scope::tenant, "rxe0", Resource::qp) == 250);
    CHECK(limits().configured(Scope::tenant, "rxe0", Resource::qp) == 250);
    CHECK(limits().as_written(LimitPart::limit, Scope::tenant, "rxe0", Resource::qp) == percentage(250));
    CHECK(limits().soft("rxe0", Resource::qp) == 500);
    CHECK(limits().guarantee("rxe0", Resource::qp) == 500);
    CHECK(limits().share_figures("rxe0")[index(Resource::qp)].limit == 250);
    CHECK(limits().limit(Scope::tenant, "rxe1", Resource::qp) == unlimited);  // another device
    CHECK(limits().devices(Scope::tenant) == std::vector<std::string>{"*"});

    const LimitsWriter::Grant share{"rxe0", Resource::qp, 300};
    REQUIRE(writer->grant(std::span(&share, 1), ""));
    CHECK(limits().limit(Scope::tenant, "rxe0", Resource::qp) == 250);
    const auto generation = limits().generation();
    capacity[index(Resource::qp)] = 2000;
    REQUIRE(writer->set_capacity("rxe0", capacity));
    CHECK(limits().limit(Scope::tenant, "rxe0", Resource::qp) == 300);  // the share is less by now
    CHECK(limits().reason(Scope::tenant, "rxe0", Resource::qp) == Reason::grant);
    CHECK(limits().generation() > generation);
}

TEST_CASE_METHOD(Fixture, "what devices have is kept when limits are published") {
    auto capacity = unset_row();
    capacity[index(Resource::qp)] = 1000;
    {
        auto writer = LimitsWriter::open(path);
        REQUIRE(writer);
        REQUIRE(writer->set_capacity("rxe0", capacity));
    }
    TenantLimits limits;
    row_for(limits.limits[index(Scope::tenant)], "rxe0")[index(Resource::qp)] = percentage(1);
    REQUIRE(LimitsWriter::publish(path, limits));
    CHECK(limit("rxe0") == 1);
    CHECK(limit("rxe0/1") == unlimited);
    const auto memory = LimitsSegment::open(path)->amount(percentage(500), "total", Resource::mr_bytes);
    CHECK(memory > 1 << 20);  // half of the node's
    CHECK(memory < max_amount);
}
