// What a charge does when limits change under it, or when it finds room for a part only.
#include <catch2/catch.hpp>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <sys/mman.h>

#include "test/unit/provider/wrapped_context.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

ibv_qp made_qp[4];
int made;
ibv_qp* real_create_qp(ibv_pd* pd, ibv_qp_init_attr*) {
    made_qp[made].context = pd->context;
    return &made_qp[made++];
}

// Calls `act` at this process's next write to a file that it has mapped: write protection makes that a SIGSEGV.
class AtNextWrite {
public:
    AtNextWrite(const std::string& path, std::function<void()> act) {
        std::ifstream maps("/proc/self/maps");
        for (std::string line; std::getline(maps, line);) {
            unsigned long from = 0, to = 0;
            if (line.ends_with(path) && std::sscanf(line.c_str(), "%lx-%lx rw", &from, &to) == 2)
                ranges.emplace_back(reinterpret_cast<void*>(from), to - from);
        }
        REQUIRE_FALSE(ranges.empty());
        acts = std::move(act);
        struct sigaction mine {};
        mine.sa_handler = [](int) {
            protect(PROT_READ | PROT_WRITE);
            std::exchange(acts, {})();
        };
        sigaction(SIGSEGV, &mine, &before_);
        protect(PROT_READ);
    }
    AtNextWrite(const AtNextWrite&) = delete;
    ~AtNextWrite() {
        protect(PROT_READ | PROT_WRITE);
        sigaction(SIGSEGV, &before_, nullptr);
        ranges.clear();
    }
    static bool has_acted() { return !acts; }

private:
    static void protect(int protection) {
        for (const auto& [start, size] : ranges) mprotect(start, size, protection);
    }
    inline static std::vector<std::pair<void*, std::size_t>> ranges;
    inline static std::function<void()> acts;
    struct sigaction before_ {};
};

TenantLimits tenant_with(Resource resource, std::uint64_t limit) {
    TenantLimits policy;
    row_for(policy.limits[index(Scope::tenant)], "*")[index(resource)] = limit;
    return policy;
}

struct Maker {
    WrappedContext context;
    ibv_pd pd{};
    ibv_qp* (*wrapped)(ibv_pd*, ibv_qp_init_attr*) = context.wrapped(Op::create_qp, real_create_qp);

    explicit Maker(const TenantLimits& limits) : context(limits) {
        pd.context = &context.verbs;
        made = 0;
    }
    bool create(std::uint32_t recv_wr = 1) {
        ibv_qp_init_attr attr{};
        attr.cap.max_recv_wr = recv_wr;
        return wrapped(&pd, &attr) != nullptr;
    }
};

}  // namespace

// After its first look at the limits a charge raises, then looks whether they still hold: whoever lowers a limit and reads
// usage then has seen all that was charged by the old one.
TEST_CASE("a charge is denied by a limit that was lowered after it had begun") {
    Maker maker(tenant_with(Resource::qp, 5));
    REQUIRE(maker.create());
    const auto& directory = maker.context.directory.path();
    const AtNextWrite lowers(data_path(ledger_path(directory)), [&] {
        auto writer = LimitsWriter::open(limits_path(directory));
        if (writer) static_cast<void>(writer->set(Scope::tenant, "*", Resource::qp, 1));
    });
    CHECK_FALSE(maker.create());
    CHECK(AtNextWrite::has_acted());
    CHECK(made == 1);
    CHECK(maker.context.usage(Resource::qp) == 1);
}

TEST_CASE("a charge that finds room for a part only charges nothing") {
    Maker maker(tenant_with(Resource::recv_wr, 10));
    REQUIRE(maker.create());
    CHECK_FALSE(maker.create(16));
    CHECK(maker.context.usage(Resource::qp) == 1);
    CHECK(maker.context.usage(Resource::hca_object) == 1);
    CHECK(maker.context.usage(Resource::recv_wr) == 1);
}
