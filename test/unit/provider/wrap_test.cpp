#include <catch2/catch.hpp>

#include <cerrno>
#include <cstring>
#include <numeric>

#include "test/unit/provider/wrapped_context.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

// As in provider/ops/mr.cpp.
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

int real_modify_qp(ibv_qp*, ibv_qp_attr*, int) { return fake_status; }

int events_seen;
void real_cq_event(ibv_cq*) { ++events_seen; }

ibv_qp fake_qp[3];
int qps_made;
ibv_qp* real_create_qp(ibv_pd* pd, ibv_qp_init_attr*) {
    fake_qp[qps_made].context = pd->context;
    return &fake_qp[qps_made++];
}
int real_destroy_qp(ibv_qp*) { return 0; }

// A device that has a thousand of everything, or nothing.
int real_query_device(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex* attr, std::size_t bytes) {
    std::memset(attr, 0, bytes);
    auto& base = attr->orig_attr;
    for (auto* field : {&base.max_qp, &base.max_qp_wr, &base.max_cq, &base.max_cqe, &base.max_mr, &base.max_pd,
                        &base.max_mw, &base.max_ah, &base.max_srq_wr})
        *field = 1000;
    base.max_mr_size = UINT64_MAX;
    base.phys_port_cnt = 2;
    if (bytes < sizeof *attr) return 0;
    attr->max_wq_type_rq = attr->rss_caps.max_rwq_indirection_tables = 1000;
    attr->max_dm_size = 1000;
    return 0;
}

ibv_device_attr_ex query(WrappedContext& context, std::size_t bytes = sizeof(ibv_device_attr_ex)) {
    ibv_device_attr_ex attr{};
    std::memset(&attr, 0x5a, sizeof attr);
    const auto op = context.wrapped(Op::query_device_ex, real_query_device);
    REQUIRE(op(&context.verbs, nullptr, &attr, bytes) == 0);
    return attr;
}

TenantLimits clamping(Mode mode = Mode::enforce) {
    TenantLimits policy;
    policy.clamp_device_attr = true;
    policy.mode = mode;
    auto& tenant = row_for(policy.limits[index(Scope::tenant)], "*");
    tenant[index(Resource::mr)] = 5;
    tenant[index(Resource::mr_bytes)] = 10000;
    tenant[index(Resource::send_wr)] = 70;
    tenant[index(Resource::cqe)] = 2000;
    tenant[index(Resource::srq)] = 2;
    auto& process = row_for(policy.limits[index(Scope::process)], "fake0");
    process[index(Resource::recv_wr)] = 60;
    process[index(Resource::wq)] = 4;
    process[index(Resource::dm_bytes)] = 512;
    auto& total = row_for(policy.limits[index(Scope::tenant)], "total");
    total[index(Resource::hca_object)] = 8;
    total[index(Resource::cq)] = 3;
    return policy;
}

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
        CHECK(wrapped[i] == (kind != OpClass::pass_ && kind != OpClass::import_));
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

TEST_CASE("device attributes tell what the quota leaves") {
    WrappedContext context(clamping());
    const auto attr = query(context);
    CHECK(attr.orig_attr.max_mr == 5);
    CHECK(attr.orig_attr.max_mr_size == 10000);
    CHECK(attr.orig_attr.max_qp_wr == 60);
    CHECK(attr.orig_attr.max_cq == 3);
    CHECK(attr.orig_attr.max_cqe == 1000);
    CHECK(attr.orig_attr.max_qp == 8);  // by hca_object
    CHECK(attr.orig_attr.max_srq == 0);  // the device has none
    CHECK(attr.max_wq_type_rq == 4);
    CHECK(attr.rss_caps.max_rwq_indirection_tables == 8);
    CHECK(attr.max_dm_size == 512);
}

TEST_CASE("what the process holds is part of how many, not of how large") {
    WrappedContext context(clamping());
    const Mr mr(context, 4096, 0);
    const auto attr = query(context);
    CHECK(attr.orig_attr.max_mr == 5);
    CHECK(attr.orig_attr.max_mr_size == 10000 - 4096);
    CHECK(attr.orig_attr.max_pd == 7);  // one hca_object less

    auto ledger = Ledger::open(ledger_path(context.directory.path()));
    REQUIRE(ledger);
    auto other = ledger->claim(identity_of_self());
    REQUIRE(other);
    const Limits none[Amounts::capacity];
    const auto charge_three = [&] {
        return !ledger->charge(*other, *ledger->device_index("fake0"), Amounts{}.add(Resource::mr, 3), none);
    };
    REQUIRE(charge_three());
    CHECK(query(context).orig_attr.max_mr == 2);
    ledger->retire(*other);
    CHECK(query(context).orig_attr.max_mr == 5);

    other = ledger->claim(identity_of_self());
    REQUIRE(other);
    REQUIRE(charge_three());
    other = Error{"as if it had been killed"};
    CHECK(query(context).orig_attr.max_mr == 5);
}

TEST_CASE("a caller with a shorter struct gets no byte more") {
    WrappedContext context(clamping());
    const auto attr = query(context, sizeof(ibv_device_attr));
    CHECK(attr.orig_attr.max_mr == 5);
    CHECK(attr.max_wq_type_rq == 0x5a5a5a5a);
    CHECK(attr.max_dm_size == 0x5a5a5a5a5a5a5a5a);
}

TEST_CASE("without clamping, and in audit mode, the device's attributes stay") {
    auto policy = clamping(GENERATE(Mode::enforce, Mode::audit, Mode::off));
    policy.clamp_device_attr = policy.mode != Mode::enforce;
    WrappedContext context(policy);
    CHECK(query(context).orig_attr.max_mr == 1000);
    CHECK(query(context).orig_attr.max_mr_size == UINT64_MAX);
}

TEST_CASE("state changes and completion events are counted, unless the mode is off") {
    TenantLimits policy;
    policy.mode = GENERATE(Mode::enforce, Mode::audit, Mode::off);
    const unsigned counted = policy.mode == Mode::off ? 0 : 1;
    WrappedContext context(policy);
    const auto modify = context.wrapped(Op::modify_qp, real_modify_qp);
    const auto cq_event = context.wrapped(Op::cq_event, real_cq_event);
    ibv_qp qp{};
    ibv_cq cq{};
    qp.context = cq.context = &context.verbs;
    ibv_qp_attr attr{};

    attr.qp_state = IBV_QPS_RTR;
    fake_status = 0;
    CHECK(modify(&qp, &attr, IBV_QP_STATE) == 0);
    CHECK(modify(&qp, &attr, IBV_QP_ACCESS_FLAGS) == 0);  // no change of state
    fake_status = ENETUNREACH;
    attr.qp_state = IBV_QPS_RTS;
    CHECK(modify(&qp, &attr, IBV_QP_STATE) == ENETUNREACH);
    attr.qp_state = static_cast<ibv_qp_state>(qp_states);  // no state: the kernel's to refuse
    CHECK(modify(&qp, &attr, IBV_QP_STATE) == ENETUNREACH);
    events_seen = 0;
    cq_event(&cq);
    CHECK(events_seen == 1);

    auto ledger = Ledger::open(ledger_path(context.directory.path()));
    REQUIRE(ledger);
    const auto activity = ledger->tenant_activity(*ledger->device_index("fake0"));
    CHECK(activity.qp_to[IBV_QPS_RTR] == counted);
    CHECK(activity.qp_to[IBV_QPS_RTS] == 0);
    CHECK(activity.qp_failed[IBV_QPS_RTS] == counted);
    CHECK(activity.qp_failed[IBV_QPS_RESET] == 0);
    CHECK(std::accumulate(activity.qp_failed, activity.qp_failed + qp_states, 0U) == counted);
    // What lies behind the last state of the first device is the second device's.
    CHECK(ledger->tenant_activity(*ledger->device_index("fake0") + 1).cq_events == 0);
    CHECK(activity.cq_events == counted);
}

namespace {

// QPs of a device with two ports.
struct TwoPorts {
    WrappedContext context;
    ibv_pd pd{};

    explicit TwoPorts(std::uint64_t limit = unset, const char* second = "fake0/2") : context(policy(limit, second)) {
        pd.context = &context.verbs;
        qps_made = fake_status = 0;
        context.wrapped(Op::query_device_ex, real_query_device);
        for (int i = 0; i < 3; ++i) {
            ibv_qp_init_attr attr{};
            REQUIRE(context.wrapped(Op::create_qp, real_create_qp)(&pd, &attr));
        }
    }

    static TenantLimits policy(std::uint64_t limit, const char* second) {
        TenantLimits policy;
        policy.log_level = LogLevel::none;
        row_for(policy.limits[index(Scope::tenant)], "fake0/1")[index(Resource::qp)] = limit;
        row_for(policy.limits[index(Scope::tenant)], second)[index(Resource::qp)] = 9;
        row_for(policy.limits[index(Scope::tenant)], "*")[index(Resource::qp)] = 3;
        row_for(policy.limits[index(Scope::process)], "total")[index(Resource::qp)] = 3;
        return policy;
    }

    int modify(int qp, int mask, int port, int alternate = 0) {
        ibv_qp_attr attr{};
        attr.qp_state = IBV_QPS_INIT;
        attr.port_num = static_cast<std::uint8_t>(port);
        attr.alt_port_num = static_cast<std::uint8_t>(alternate);
        return context.wrapped(Op::modify_qp, real_modify_qp)(&fake_qp[qp], &attr, mask);
    }
    int bind(int qp, int port) { return modify(qp, IBV_QP_STATE | IBV_QP_PORT, port); }
    std::uint64_t at(int port) const { return context.usage(Resource::qp, "fake0/" + std::to_string(port)); }
};

}  // namespace

TEST_CASE("a QP counts at the port that it is bound to") {
    TwoPorts device;
    CHECK(device.bind(0, 1) == 0);
    CHECK(device.bind(1, 1) == 0);
    CHECK(device.at(1) == 2);
    CHECK(device.context.usage(Resource::qp) == 3);
    CHECK(device.context.usage(Resource::hca_object, "fake0/1") == 0);

    CHECK(device.bind(1, 1) == 0);  // where it is already
    CHECK(device.bind(0, 2) == 0);
    CHECK(device.modify(1, IBV_QP_ALT_PATH, 0, 2) == 0);
    CHECK(device.modify(1, IBV_QP_STATE, 2) == 0);  // the port is not asked for
    CHECK(device.at(1) == 1);
    CHECK(device.at(2) == 1);

    fake_status = EINVAL;
    CHECK(device.bind(0, 1) == EINVAL);
    CHECK(device.bind(2, 1) == EINVAL);
    CHECK(device.at(1) == 1);
    CHECK(device.at(2) == 1);

    fake_status = 0;
    device.context.wrapped(Op::destroy_qp, real_destroy_qp)(&fake_qp[0]);
    CHECK(device.at(2) == 0);
    CHECK(device.at(1) == 1);
}

TEST_CASE("a port that the device has not, or that nobody names, takes no room in the ledger") {
    TwoPorts device(unset, "fake0/1");
    CHECK(device.bind(0, 2) == 0);
    CHECK(device.bind(0, 3) == 0);
    CHECK(device.bind(0, 0) == 0);
    auto ledger = Ledger::open(ledger_path(device.context.directory.path()));
    REQUIRE(ledger);
    CHECK(ledger->devices().size() == 1);
}

TEST_CASE("a port's limit denies the binding and leaves the QP where it was") {
    TwoPorts device(1);
    CHECK(device.bind(0, 1) == 0);
    CHECK(device.bind(1, 2) == 0);
    errno = 0;
    CHECK(device.bind(1, 1) == EDQUOT);
    CHECK(errno == EDQUOT);
    CHECK(device.bind(2, 1) == EDQUOT);
    CHECK(device.at(1) == 1);
    CHECK(device.at(2) == 1);

    auto ledger = Ledger::open(ledger_path(device.context.directory.path()));
    REQUIRE(ledger);
    const auto events = ledger->events();
    REQUIRE(events.size() == 1);
    CHECK(events[0].second.count == 2);
    CHECK(ledger->devices()[events[0].second.device].name == "fake0/1");
    CHECK(events[0].second.pid == static_cast<std::uint32_t>(getpid()));
    CHECK(events[0].second.uid == getuid());
    CHECK(ledger->tenant_activity(*ledger->device_index("fake0")).qp_failed[IBV_QPS_INIT] == 2);
}

TEST_CASE("closing the device uncharges what its ports held") {
    TwoPorts device;
    CHECK(device.bind(0, 1) == 0);
    CHECK(device.bind(1, 2) == 0);
    delete Context::remove(&device.context.verbs);
    CHECK(device.at(1) == 0);
    CHECK(device.at(2) == 0);
}

// The guard in the kernel counts what an ending process holds for a moment longer than the ledger does.
namespace {

int refusals_left, calls, refused_with = EDQUOT;
int refused_rereg(FakeMr*, int, ibv_pd*, void*, std::size_t, int) {
    ++calls;
    return refusals_left-- > 0 ? EDQUOT : 0;
}
ibv_qp* refused_create_qp(ibv_pd* pd, ibv_qp_init_attr*) {
    ++calls;
    if (refusals_left-- > 0) return errno = refused_with, nullptr;
    fake_qp[0].context = pd->context;
    return &fake_qp[0];
}

}  // namespace

TEST_CASE("what the guard refuses is tried again for a moment") {
    WrappedContext context;
    ibv_pd pd{};
    pd.context = &context.verbs;
    ibv_qp_init_attr attr{};
    const auto create = context.wrapped(Op::create_qp, refused_create_qp);
    calls = 0;
    refusals_left = 2;
    CHECK(create(&pd, &attr) == &fake_qp[0]);
    CHECK(calls == 3);
    CHECK(context.usage(Resource::qp) == 1);
    calls = 0;
    refusals_left = 100;
    errno = 0;
    CHECK(create(&pd, &attr) == nullptr);
    CHECK(errno == EDQUOT);
    CHECK(calls == 9);
    CHECK(context.usage(Resource::qp) == 1);
}

TEST_CASE("so is what fails with the errno that the policy denies with, and nothing else") {
    TenantLimits limits;
    limits.deny_errno = ENOMEM;
    WrappedContext context(limits);
    ibv_pd pd{};
    pd.context = &context.verbs;
    ibv_qp_init_attr attr{};
    const auto create = context.wrapped(Op::create_qp, refused_create_qp);
    const auto calls_until_given_up = [&](int error) {
        refused_with = error;
        refusals_left = 100;
        calls = 0;
        CHECK(create(&pd, &attr) == nullptr);
        CHECK(errno == error);
        return calls;
    };
    CHECK(calls_until_given_up(ENOMEM) == 9);
    CHECK(calls_until_given_up(EAGAIN) == 1);
    CHECK(calls_until_given_up(EINVAL) == 1);
    refused_with = EDQUOT;
}

TEST_CASE("a registration that shall change is tried again, too") {
    WrappedContext context;
    Mr mr(context, 4096, 0);
    const auto rereg = context.wrapped(Op::rereg_mr, refused_rereg);
    calls = 0;
    refusals_left = 2;
    CHECK(rereg(&fake_mr, IBV_REREG_MR_CHANGE_TRANSLATION, nullptr, nullptr, 8192, 0) == 0);
    CHECK(calls == 3);
    CHECK(context.usage(Resource::mr_bytes) == 8192);
}

TEST_CASE("a refusal by the guard says whose it is") {
    CHECK(refusal_line("mlx5_0", Kind::qp, EDQUOT) ==
          "qp on mlx5_0 denied (EDQUOT) by the guard in the kernel, although the ledger has room: the rest is in use around "
          "the library; rdmaquota guard says how much");
    CHECK(refusal_line("mlx5_0", Kind::object, ENOMEM)
              .starts_with("hca_object on mlx5_0 denied (ENOMEM) by the guard in the kernel, or by the device, although"));
}

TEST_CASE("what the real call fails for want of something is an event, once, and errno stays; a wrong argument is none") {
    WrappedContext context;
    const auto events = [&] {
        const auto ledger = Ledger::open(ledger_path(context.directory.path()));
        REQUIRE(ledger);
        return ledger->events();
    };
    const auto invalid = context.wrapped(Op::alloc_pd, +[](ibv_context*) -> ibv_pd* { return errno = EINVAL, nullptr; });
    CHECK_FALSE(invalid(&context.verbs));
    CHECK(events().empty());
    const auto full = context.wrapped(Op::alloc_pd, +[](ibv_context*) -> ibv_pd* { return errno = ENOMEM, nullptr; });
    for (int i = 0; i < 3; ++i) {
        errno = 0;
        CHECK_FALSE(full(&context.verbs));
        CHECK(errno == ENOMEM);
    }
    const auto seen = events();
    REQUIRE(seen.size() == 1);
    CHECK(seen.front().second.kind == EventKind::refused_by_device);
    CHECK(seen.front().second.resource == index(Resource::pd));
    CHECK(seen.front().second.error == ENOMEM);
    CHECK(seen.front().second.count == 3);
    CHECK(context.usage(Resource::pd) == 0);
}

TEST_CASE("the peak is of what was created, not of what a failed creation asked for") {
    WrappedContext context;
    static ibv_cq made;
    static bool fails = true;
    const auto create = context.wrapped(Op::create_cq, +[](ibv_context* verbs, int, ibv_comp_channel*, int) -> ibv_cq* {
        made.context = verbs;
        return fails ? (errno = ENOMEM, nullptr) : &made;
    });
    const auto peak = [&] {
        const auto ledger = Ledger::open(ledger_path(context.directory.path()));
        REQUIRE(ledger);
        return ledger->peak(0, Resource::cqe);
    };
    CHECK_FALSE(create(&context.verbs, 1 << 30, nullptr, 0));
    CHECK(peak() == 0);
    fails = false;
    REQUIRE(create(&context.verbs, 16, nullptr, 0));
    CHECK(peak() == 16);
    REQUIRE(context.wrapped(Op::destroy_cq, +[](ibv_cq*) { return 0; })(&made) == 0);
    CHECK(context.usage(Resource::cqe) == 0);
    CHECK(peak() == 16);
}

TEST_CASE("a percentage of a device that nobody asked is of what it reports to the program") {
    TenantLimits limits;
    row_for(limits.limits[index(Scope::tenant)], "*")[index(Resource::qp)] = percentage(2);  // of a thousand
    WrappedContext context(limits);
    qps_made = 0;
    (void)context.wrapped(Op::query_device_ex, real_query_device);
    const auto create = context.wrapped(Op::create_qp, real_create_qp);
    ibv_pd pd{};
    pd.context = &context.verbs;
    ibv_cq cq{};
    ibv_qp_init_attr attr{};
    attr.send_cq = attr.recv_cq = &cq;
    attr.qp_type = IBV_QPT_RC;
    CHECK(create(&pd, &attr) != nullptr);
    CHECK(create(&pd, &attr) != nullptr);
    CHECK(create(&pd, &attr) == nullptr);
    CHECK(errno == EDQUOT);
    auto writer = LimitsWriter::open(limits_path(context.directory.path()));
    REQUIRE(writer);
    auto capacity = unset_row();
    capacity[index(Resource::qp)] = 1500;
    REQUIRE(writer->set_capacity("fake0", capacity));  // what the sidecar knows counts
    CHECK(create(&pd, &attr) != nullptr);
    CHECK(create(&pd, &attr) == nullptr);
}
