// Closed contexts whose open file outlives them, as the wrapped free_context leaves them.
#include <catch2/catch.hpp>

#include <atomic>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/unit/provider/wrapped_context.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

void real_free_context(ibv_context* context) { close(context->cmd_fd); }

ibv_pd fake_pds[16];
std::atomic<int> pds_made = 0;
ibv_pd* real_alloc_pd(ibv_context* context) {
    auto* pd = &fake_pds[pds_made++ % 16];
    pd->context = context;
    return pd;
}

TenantLimits two_pds() {
    TenantLimits policy;
    policy.log_level = LogLevel::none;
    row_for(policy.limits[index(Scope::process)], "*")[index(Resource::pd)] = 2;
    return policy;
}

// A second context of the device, with two PDs, that is closed while another descriptor keeps its file.
struct Closed {
    std::string path;
    ibv_device device{};
    ibv_context verbs{};
    int kept = -1;

    explicit Closed(WrappedContext& context) : path(context.directory.path() + "/device") {
        std::ofstream(path) << "";
        verbs.device = &device;
        verbs.cmd_fd = open(path.c_str(), O_RDWR | O_CLOEXEC);
        kept = dup(verbs.cmd_fd);
        auto* record = new Context("fake0", "fake0");
        record->set_real(Op::alloc_pd, reinterpret_cast<OpPointer>(real_alloc_pd));
        record->set_real(Op::free_context, reinterpret_cast<OpPointer>(real_free_context));
        Context::add(&verbs, record);
        const auto alloc_pd = context.wrapped(Op::alloc_pd, real_alloc_pd);
        REQUIRE(alloc_pd(&verbs));
        REQUIRE(alloc_pd(&verbs));
        context.wrapped(Op::free_context, real_free_context)(&verbs);
    }
};

}  // namespace

TEST_CASE("what the kernel still has of a closed context stays charged until its file is gone") {
    WrappedContext context(two_pds());
    Closed closed(context);
    const auto alloc_pd = context.wrapped(Op::alloc_pd, real_alloc_pd);
    CHECK(context.usage(Resource::pd) == 2);
    CHECK_FALSE(alloc_pd(&context.verbs));
    close(closed.kept);
    CHECK(alloc_pd(&context.verbs));
    CHECK(context.usage(Resource::pd) == 1);
}

TEST_CASE("two threads that find no room both get what ending a closed context uncharges") {
    WrappedContext context(two_pds());
    const auto alloc_pd = context.wrapped(Op::alloc_pd, real_alloc_pd);
    int denied = 0;
    for (int round = 0; round < 300; ++round) {
        Closed closed(context);
        close(closed.kept);
        std::atomic<int> ready = 0, made = 0;
        const auto allocate = [&] {
            ++ready;
            while (ready < 2) {
            }
            if (alloc_pd(&context.verbs)) ++made;
        };
        std::thread first(allocate), second(allocate);
        first.join();
        second.join();
        denied += 2 - made;
        delete Context::remove(&context.verbs);
        Context::add(&context.verbs, new Context("fake0", "fake0"));
        context.wrapped(Op::alloc_pd, real_alloc_pd);
    }
    CHECK(denied == 0);
}

// In a child, since the context keeps its accounts as long as the process.
TEST_CASE("a context whose file cannot be watched stays charged while this process has it open") {
    const auto body = [] {
        WrappedContext context(two_pds());
        const auto path = context.directory.path() + "/device";
        std::ofstream(path) << "";
        const int foreign = open(path.c_str(), O_RDWR | O_CLOEXEC);
        struct flock whole {};
        whole.l_type = F_WRLCK;
        if (fcntl(foreign, F_OFD_SETLK, &whole) != 0) return 2;
        Closed closed(context);
        Context::end_closed();
        if (context.usage(Resource::pd) != 2) return 1;
        close(closed.kept);
        close(foreign);
        Context::end_closed();
        return context.usage(Resource::pd) == 0 ? 0 : 3;
    };
    const pid_t child = fork();
    if (child == 0) _exit(body());
    REQUIRE(child > 0);
    int status = 0;
    REQUIRE(waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}
