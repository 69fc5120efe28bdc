// What devices turn out to have, and that it outlives the daemon.
#include <catch2/catch.hpp>

#include <cerrno>
#include <fstream>

#include "test/unit/tools/tenant_node.hpp"
#include "tools/common/views/json.hpp"
#include "tools/rdmaquotad/dynamic/capacity_file.hpp"

using namespace rdmaquota;

namespace {

constexpr auto qp = Resource::qp;
constexpr auto none = [](Resource) { return false; };

// A node on which nothing is used, and devices that tell of 100.
struct Capacities : TenantNode {
    Capacities() { publish({}); }
    DeviceCapacity capacity{[](const std::string&, Resource) { return std::uint64_t{100}; }};

    static Event refused(int error, std::uint64_t used) {
        Event event{};
        event.kind = EventKind::refused_by_device;
        event.resource = static_cast<std::uint32_t>(index(qp));
        event.error = static_cast<std::uint32_t>(error);
        event.used = used;
        return event;
    }
    void look(DeviceCapacity& at) const {
        const Node node(path, [] { return LookSchedule::Clock::now(); });
        at.look({"rxe0"}, NodeUsage(node, {}, none));
    }
    std::uint64_t found(const DeviceCapacity& of) const {
        const auto list = of.learned();
        return list.empty() ? 0 : list[0].value("found", std::uint64_t{0});
    }
};

}  // namespace

TEST_CASE_METHOD(Capacities, "a device has no more than it refused, unless it refused for another reason") {
    capacity.add("rxe0", refused(EINVAL, 70));
    look(capacity);
    CHECK(found(capacity) == 0);
    capacity.add("rxe0", refused(ENOMEM, 70));
    look(capacity);
    CHECK(found(capacity) == 70);
    CHECK(capacity.all().at({"rxe0", qp}).capacity == 70);
    capacity.add("rxe0", refused(ENOMEM, 100));  // that is what it tells
    look(capacity);
    CHECK(found(capacity) == 0);
}

TEST_CASE_METHOD(Capacities, "what a device turned out to have is kept over a restart") {
    CapacityFile file(path);
    capacity.add("rxe0", refused(ENOMEM, 70));
    look(capacity);
    REQUIRE(file.save(capacity));

    DeviceCapacity next{[](const std::string&, Resource) { return std::uint64_t{100}; }};
    CapacityFile(path).load(next);
    CHECK(found(next) == 70);
    CHECK(next.learned() == capacity.learned());
    look(next);
    CHECK(found(next) == 70);

    SECTION("a file is written when something changed") {
        std::ofstream(path + "/capacity.json") << "untouched";
        REQUIRE(file.save(capacity));
        std::string word;
        std::ifstream(path + "/capacity.json") >> word;
        CHECK(word == "untouched");
    }
    SECTION("a file that cannot be used is left out") {
        for (const auto* text : {"", "no JSON", "{}", "[1]", R"([{"device":1,"resource":"qp","found":3}])",
                                 R"([{"device":"rxe0","resource":"of a later version","found":3}])"}) {
            std::ofstream(path + "/capacity.json") << text;
            DeviceCapacity empty{[](const std::string&, Resource) { return std::uint64_t{100}; }};
            CapacityFile(path).load(empty);
            CHECK(empty.learned().empty());
        }
    }
}

TEST_CASE_METHOD(Capacities, "limits follow what a device refused only where the kernel counted half of what it reports") {
    const auto learned_with = [&](std::uint64_t counted) {
        DeviceCapacity own{[](const std::string&, Resource) { return std::uint64_t{100}; }};
        own.add("rxe0", refused(ENOMEM, 70));
        const Node node(path, [] { return LookSchedule::Clock::now(); });
        KernelUse use{};
        use.device = "rxe0";
        use.live[index(qp)] = counted;
        own.look({"rxe0"}, NodeUsage(node, {use}, none));
        return own;
    };
    CHECK(learned_with(49).credible("rxe0", qp) == 0);  // a tenant may say so
    CHECK(found(learned_with(49)) == 70);
    auto borne_out = learned_with(50);
    CHECK(borne_out.credible("rxe0", qp) == 70);
    CapacityFile file(path);
    REQUIRE(file.save(borne_out));
    CapacityFile(path).load(capacity);
    CHECK(capacity.credible("rxe0", qp) == 70);
}
