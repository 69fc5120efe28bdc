#include <catch2/catch.hpp>

#include "wrapped_context.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

// As in provider/ops_mr.cpp.
struct FakeMr {
    ibv_mr mr;
    int type;
    int access;
};
ibv_context* fake_context;
FakeMr fake_mr;
int fake_status;

ibv_mr* real_reg_mr(ibv_pd*, void*, std::size_t length, std::uint64_t, int access) {
    fake_mr = {};
    fake_mr.mr.context = fake_context;
    fake_mr.mr.length = length;
    fake_mr.access = access;
    return &fake_mr.mr;
}

int real_rereg_mr(FakeMr*, int, ibv_pd*, void*, std::size_t, int) { return fake_status; }

// One MR and its changes, as libibverbs makes them.
struct Mr {
    WrappedContext& context;
    ibv_pd pd{};

    Mr(WrappedContext& in, std::size_t length, int access) : context(in) {
        pd.context = fake_context = &context.verbs;
        fake_status = 0;
        REQUIRE(context.wrapped(Op::reg_mr, real_reg_mr)(&pd, nullptr, length, 0, access));
    }

    std::uint64_t change(int flags, std::size_t length, int access) {
        const auto rereg = context.wrapped(Op::rereg_mr, real_rereg_mr);
        if (rereg(&fake_mr, flags, &pd, nullptr, length, access) == 0 && (flags & IBV_REREG_MR_CHANGE_TRANSLATION))
            fake_mr.mr.length = length;
        return context.usage(Resource::mr_bytes);
    }
};

constexpr int translation = IBV_REREG_MR_CHANGE_TRANSLATION;
constexpr int access_only = IBV_REREG_MR_CHANGE_ACCESS;
constexpr int demand = IBV_ACCESS_ON_DEMAND;

}  // namespace

TEST_CASE("the wrapped ops are those whose class says so") {
    bool wrapped[op_count] = {};
    for (const auto wrappers : all_ops())
        for (const auto& wrapper : wrappers) {
            INFO(op_table[static_cast<std::size_t>(wrapper.op)].name);
            CHECK_FALSE(wrapped[static_cast<std::size_t>(wrapper.op)]);
            wrapped[static_cast<std::size_t>(wrapper.op)] = true;
        }
    for (std::size_t i = 0; i < op_count; ++i) {
        INFO(op_table[i].name);
        const auto kind = op_table[i].kind;
        CHECK(wrapped[i] == (kind == OpClass::charge_ || kind == OpClass::release_ || kind == OpClass::resize_));
    }
}

TEST_CASE("a region that is registered again costs what it then pins") {
    WrappedContext context;
    Mr mr(context, 4096, 0);
    CHECK(context.usage(Resource::mr_bytes) == 4096);
    CHECK(mr.change(translation, 12288, 0) == 12288);
    CHECK(mr.change(IBV_REREG_MR_CHANGE_PD, 0, 0) == 12288);
    CHECK(mr.change(access_only, 0, IBV_ACCESS_LOCAL_WRITE) == 12288);
    fake_status = EINVAL;
    CHECK(mr.change(translation, 4096, 0) == 12288);
    CHECK(mr.change(translation, 65536, 0) == 12288);
}

TEST_CASE("a region on demand pins nothing, also when it moves") {
    WrappedContext context;
    Mr mr(context, 4096, demand);
    CHECK(context.usage(Resource::mr_bytes) == 0);
    CHECK(mr.change(translation, 12288, 0) == 0);
    CHECK(mr.change(access_only, 0, IBV_ACCESS_LOCAL_WRITE) == 12288);
    CHECK(mr.change(access_only, 0, demand) == 0);
    CHECK(mr.change(translation | access_only, 8192, 0) == 8192);
}
