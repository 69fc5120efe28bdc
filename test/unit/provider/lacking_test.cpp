// Registrations that must not be hidden by a quota, and the errno of those that are denied.
#include <catch2/catch.hpp>

#include <cerrno>

#include <unistd.h>

#include "test/unit/provider/wrapped_context.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

int seen_fd, fails_with;
ibv_mr made;

ibv_mr* real_reg_dmabuf_mr(ibv_pd* pd, std::uint64_t, std::size_t, std::uint64_t, int fd, int) {
    seen_fd = fd;
    made.context = pd->context;
    return fails_with == 0 ? &made : (errno = fails_with, nullptr);
}
ibv_mr* real_reg_mr(ibv_pd* pd, void*, std::size_t, std::uint64_t, int) {
    made.context = pd->context;
    return fails_with == 0 ? &made : (errno = fails_with, nullptr);
}

TenantLimits without_mrs(int deny_errno) {
    TenantLimits policy;
    policy.log_level = LogLevel::none;
    policy.deny_errno = deny_errno;
    auto& tenant = row_for(policy.limits[index(Scope::tenant)], "*");
    tenant[index(Resource::mr)] = tenant[index(Resource::pd)] = 0;
    return policy;
}

struct Device {
    WrappedContext context;
    ibv_pd pd{};

    explicit Device(const TenantLimits& policy) : context(policy) { pd.context = &context.verbs; }

    // The errno of a registration of the file, 0 when it is made.
    int error_of(int fd) {
        errno = 0;
        return context.wrapped(Op::reg_dmabuf_mr, real_reg_dmabuf_mr)(&pd, 0, 0, 0, fd, 0) ? 0 : errno;
    }
    std::size_t events() const { return Ledger::open(ledger_path(context.directory.path()))->events().size(); }
};

}  // namespace

TEST_CASE("a DMA-BUF registration without an open file gets the real errno, whatever the limit") {
    Device device(without_mrs(EDQUOT));
    const int closed = dup(STDIN_FILENO);
    close(closed);
    for (const int error : {EOPNOTSUPP, EPROTONOSUPPORT, EBADF}) {
        fails_with = error;
        CHECK(device.error_of(-1) == error);
        CHECK(device.error_of(closed) == error);
        CHECK(seen_fd == -1);  // another thread may open the number meanwhile
    }
    CHECK(device.events() == 0);
    const int open = dup(STDIN_FILENO);
    CHECK(device.error_of(open) == EDQUOT);
    CHECK(device.events() == 1);
    close(open);
}

TEST_CASE("registrations are denied with EDQUOT where all else is with EAGAIN") {
    const int denied_with = GENERATE(EAGAIN, ENOMEM);
    const int expected = denied_with == EAGAIN ? EDQUOT : denied_with;
    Device device(without_mrs(denied_with));
    fails_with = 0;
    CHECK(device.error_of(STDIN_FILENO) == expected);
    errno = 0;
    CHECK_FALSE(device.context.wrapped(Op::reg_mr, real_reg_mr)(&device.pd, nullptr, 4096, 0, 0));
    CHECK(errno == expected);
    const auto alloc_pd = device.context.wrapped(Op::alloc_pd, +[](ibv_context*) -> ibv_pd* { return nullptr; });
    CHECK_FALSE(alloc_pd(&device.context.verbs));
    CHECK(errno == denied_with);
}

TEST_CASE("so are registrations that the guard in the kernel refuses") {
    TenantLimits policy;
    policy.log_level = LogLevel::none;
    policy.deny_errno = GENERATE(EAGAIN, EDQUOT);
    Device device(policy);
    fails_with = EAGAIN;
    CHECK_FALSE(device.context.wrapped(Op::reg_mr, real_reg_mr)(&device.pd, nullptr, 4096, 0, 0));
    CHECK(errno == (policy.deny_errno == EAGAIN ? EDQUOT : EAGAIN));  // EAGAIN is the device's own where nothing denies with it
}
