// pthread_cancel and the provider. A failure here ends the test program: "terminate called without an active
// exception".
#include <catch2/catch.hpp>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "test/unit/provider/wrapped_context.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {
thread_local bool cancel_in_poll = false;
}

// The provider polls its log file before it writes there, in the middle of a denial.
extern "C" int poll(pollfd* descriptors, nfds_t count, int timeout) {
    if (cancel_in_poll) pthread_cancel(pthread_self());
    return static_cast<int>(syscall(SYS_poll, descriptors, count, timeout));
}

namespace {

ibv_pd fake_pd;
bool cancel_in_real = false;
bool refused_by_guard = false;
std::atomic<bool> events_taken = false;

void reach_cancellation_point() {
    if (cancel_in_real) pthread_testcancel();
}
ibv_pd* real_alloc_pd(ibv_context* context) {
    reach_cancellation_point();
    if (refused_by_guard) return errno = EDQUOT, nullptr;
    fake_pd.context = context;
    return &fake_pd;
}
int real_dealloc_pd(ibv_pd*) {
    reach_cancellation_point();
    return 0;
}
int real_resize_cq(ibv_cq*, int) {
    reach_cancellation_point();
    return 0;
}
ibv_cq fake_cq;
ibv_cq* real_create_cq(ibv_context* context, int, ibv_comp_channel*, int) {
    fake_cq.context = context;
    return &fake_cq;
}

// Runs `act` in a thread that sets `returned` unless it ends in there, and then reaches a cancellation point. True
// when the thread did not get beyond that. (In glibc 2.36 a thread that is cancelled asynchronously when it enables
// cancellation does not end with PTHREAD_CANCELED.)
struct Cancelled {
    WrappedContext& context;
    void (*act)(WrappedContext&);
    int type = PTHREAD_CANCEL_DEFERRED;
    bool pending = true;  // the request is there when `act` begins
    bool returned = false;
    bool lived_on = false;

    static void* run(void* self) {
        auto& test = *static_cast<Cancelled*>(self);
        if (test.pending) pthread_cancel(pthread_self());
        cancel_in_poll = !test.pending;
        pthread_setcanceltype(test.type, nullptr);
        test.act(test.context);
        test.returned = true;
        pthread_testcancel();
        test.lived_on = true;
        return nullptr;
    }
    bool operator()() {
        pthread_t thread{};
        REQUIRE(pthread_create(&thread, nullptr, run, this) == 0);
        REQUIRE(pthread_join(thread, nullptr) == 0);
        cancel_in_real = false;
        return !lived_on;
    }
};

TenantLimits one_pd(const std::string& log) {
    TenantLimits policy;
    policy.log_target = LogTarget::file;
    policy.log_file = log;
    row_for(policy.limits[index(Scope::tenant)], "*")[index(Resource::pd)] = 1;
    return policy;
}

struct Device {
    TemporaryDirectory logs;
    WrappedContext context{one_pd(logs.path() + "/log")};

    Device() { cancel_in_real = false; }
    std::uint64_t pds() const { return context.usage(Resource::pd); }
};

void allocate(WrappedContext& context) { context.wrapped(Op::alloc_pd, real_alloc_pd)(&context.verbs); }
void deallocate(WrappedContext& context) { context.wrapped(Op::dealloc_pd, real_dealloc_pd)(&fake_pd); }
void real_cq_event(ibv_cq*) {}
// Without end: cancelled at whatever instruction it is.
[[gnu::noinline]] void take_events(void (*cq_event)(ibv_cq*)) {
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, nullptr);
    events_taken = true;
    for (;;) cq_event(&fake_cq);
}
void* run_take_events(void* cq_event) {
    take_events(reinterpret_cast<void (*)(ibv_cq*)>(cq_event));
    return nullptr;
}
void resize_to_5(WrappedContext& context) { context.wrapped(Op::resize_cq, real_resize_cq)(&fake_cq, 5); }

}  // namespace

TEST_CASE("a thread whose cancellation is pending is denied, and ends afterwards") {
    Device device;
    allocate(device.context);
    Cancelled denied{device.context, allocate};
    CHECK(denied());
    CHECK(denied.returned);
    CHECK(device.pds() == 1);
}

TEST_CASE("a thread that is cancelled in the middle of a denial ends after it") {
    Device device;
    allocate(device.context);
    const bool at_once = GENERATE(false, true);
    Cancelled denied{device.context, allocate, at_once ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, false};
    CHECK(denied());
    CHECK(denied.returned == !at_once);
    CHECK(device.pds() == 1);
    deallocate(device.context);
    CHECK(device.pds() == 0);
}

TEST_CASE("a thread that is cancelled while it waits for the guard ends after that") {
    Device device;
    refused_by_guard = true;
    Cancelled refused{device.context, allocate};
    CHECK(refused());
    CHECK(refused.returned);
    refused_by_guard = false;
    CHECK(device.pds() == 0);
}

TEST_CASE("a thread that is cancelled while a policy is read again ends after that") {
    Device device;
    REQUIRE(LimitsWriter::publish(limits_path(device.context.directory.path()), one_pd(device.logs.path() + "/log")));
    Cancelled allocated{device.context, allocate};
    CHECK(allocated());
    CHECK(allocated.returned);
    CHECK(device.pds() == 1);
}

TEST_CASE("what a thread made when it was cancelled in the real provider comes back with the last device") {
    Device device;
    cancel_in_real = true;
    Cancelled allocated{device.context, allocate};
    CHECK(allocated());
    CHECK_FALSE(allocated.returned);
    CHECK(device.pds() == 1);
    delete Context::remove(&device.context.verbs);
    CHECK(device.pds() == 0);
}

TEST_CASE("an object whose destruction was cancelled stays charged as long") {
    Device device;
    allocate(device.context);
    cancel_in_real = true;
    Cancelled destroyed{device.context, deallocate};
    CHECK(destroyed());
    CHECK_FALSE(destroyed.returned);
    deallocate(device.context);
    CHECK(device.pds() == 1);
    delete Context::remove(&device.context.verbs);
    CHECK(device.pds() == 0);
}

TEST_CASE("a thread that counts completion events can be cancelled asynchronously") {
    Device device;
    auto* const cq_event = device.context.wrapped(Op::cq_event, real_cq_event);
    fake_cq.context = &device.context.verbs;
    for (int round = 0; round < 100; ++round) {
        events_taken = false;
        pthread_t thread{};
        REQUIRE(pthread_create(&thread, nullptr, run_take_events, reinterpret_cast<void*>(cq_event)) == 0);
        while (!events_taken) sched_yield();
        std::this_thread::sleep_for(std::chrono::microseconds(round));
        REQUIRE(pthread_cancel(thread) == 0);
        REQUIRE(pthread_join(thread, nullptr) == 0);
    }
}

TEST_CASE("a resize is not cancelled") {
    Device device;
    REQUIRE(device.context.wrapped(Op::create_cq, real_create_cq)(&device.context.verbs, 2, nullptr, 0));
    cancel_in_real = true;
    Cancelled resized{device.context, resize_to_5};
    CHECK(resized());
    CHECK(resized.returned);
    CHECK(device.context.usage(Resource::cqe) == 5);
}
