// QPs that are bound to ports while other QPs of their context are, or the same one.
#include <catch2/catch.hpp>

#include <atomic>
#include <functional>
#include <thread>

#include "test/unit/provider/wrapped_context.hpp"
#include "test/waiting.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

std::function<int(ibv_qp*)> real;
int real_modify_qp(ibv_qp* qp, ibv_qp_attr*, int) { return real(qp); }
ibv_qp qps[2];
int made;
ibv_qp* real_create_qp(ibv_pd* pd, ibv_qp_init_attr*) {
    qps[made].context = pd->context;
    return &qps[made++];
}
int real_destroy_qp(ibv_qp*) { return 0; }
int real_query_device(ibv_context*, const ibv_query_device_ex_input*, ibv_device_attr_ex* attr, std::size_t) {
    attr->orig_attr.phys_port_cnt = 2;
    return 0;
}

TenantLimits both_ports() {
    TenantLimits policy;
    for (const char* port : {"fake0/1", "fake0/2"})
        row_for(policy.limits[index(Scope::tenant)], port)[index(Resource::qp)] = 9;
    return policy;
}

struct TwoQps {
    WrappedContext context{both_ports()};

    TwoQps() {
        ibv_pd pd{};
        pd.context = &context.verbs;
        made = 0;
        context.wrapped(Op::query_device_ex, real_query_device);
        ibv_qp_init_attr attr{};
        for (int i = 0; i < 2; ++i) REQUIRE(context.wrapped(Op::create_qp, real_create_qp)(&pd, &attr));
        modify = context.wrapped(Op::modify_qp, real_modify_qp);
    }
    int bind(int qp, int port) const {
        ibv_qp_attr attr{};
        attr.port_num = static_cast<std::uint8_t>(port);
        return modify(&qps[qp], &attr, IBV_QP_PORT);
    }
    std::uint64_t at(int port) const { return context.usage(Resource::qp, "fake0/" + std::to_string(port)); }

    decltype(&real_modify_qp) modify;
};

}  // namespace

TEST_CASE("the QPs of a context are bound at the same time") {
    TwoQps device;
    std::atomic<int> inside = 0;
    std::atomic<bool> both = true;
    real = [&](ibv_qp*) {
        ++inside;
        if (!eventually([&] { return inside == 2; })) both = false;
        return 0;
    };
    std::thread other([&] { device.bind(1, 1); });
    device.bind(0, 1);
    other.join();
    CHECK(both);
    CHECK(device.at(1) == 2);
}

TEST_CASE("a QP that is moved, or destroyed, while it moves counts once, where it went last") {
    TwoQps device;
    const int outer_status = GENERATE(0, EINVAL);
    bool nested = false;
    real = [&](ibv_qp*) {
        if (std::exchange(nested, true)) return 0;
        device.bind(0, 2);
        return outer_status;
    };
    CHECK(device.bind(0, 1) == outer_status);
    CHECK(device.at(1) == (outer_status == 0 ? 1 : 0));
    CHECK(device.at(2) == (outer_status == 0 ? 0 : 1));

    real = [&](ibv_qp* qp) { return device.context.wrapped(Op::destroy_qp, real_destroy_qp)(qp), outer_status; };
    CHECK(device.bind(1, 1) == outer_status);
    CHECK(device.at(1) + device.at(2) == 1);
    device.context.wrapped(Op::destroy_qp, real_destroy_qp)(&qps[0]);
    CHECK(device.at(1) + device.at(2) == 0);
}
