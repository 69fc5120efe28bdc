// When a soft limit acts as the limit.
#include <catch2/catch.hpp>

#include <ctime>

#include "provider/charging/soft_limit.hpp"
#include "shm/atomic.hpp"
#include "test/unit/temporary_directory.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

constexpr auto qp = Resource::qp;
constexpr std::uint64_t second = 1'000'000'000;

struct Soft {
    TemporaryDirectory directory;
    Ledger ledger = opened(directory / "ledger");
    Owner owner = std::move(*ledger.claim(identity_of_self()));

    static Ledger opened(const std::string& path) {
        REQUIRE(Ledger::create(path, LedgerAccess::everyone()));
        return std::move(*Ledger::open(path));
    }
    Soft() { REQUIRE(ledger.device_index("rxe0") == 0U); }
    ~Soft() { ledger.retire(owner); }
    // By 4 of 10, with a minute of grace. True: charged.
    bool charge(std::uint64_t amount) {
        Limits limits;
        limits.tenant = limit_now(ledger, 0, qp, amount, {4, 10, 60});
        return !ledger.charge(owner, 0, Amounts{}.add(qp, amount), &limits);
    }
    void uncharge(std::uint64_t amount) { ledger.uncharge(owner, 0, Amounts{}.add(qp, amount)); }
    std::uint64_t since() { return load(ledger.soft_since(0, qp)); }
    static std::uint64_t now() {
        timespec time{};
        clock_gettime(CLOCK_BOOTTIME, &time);
        return static_cast<std::uint64_t>(time.tv_sec) * second + static_cast<std::uint64_t>(time.tv_nsec);
    }
};

}  // namespace

TEST_CASE_METHOD(Soft, "a soft limit may be exceeded up to the limit, and the time is noted once") {
    CHECK(charge(4));
    CHECK(since() == 0);
    CHECK(charge(1));
    const auto crossed = since();
    CHECK(crossed != 0);
    CHECK(crossed <= now());
    CHECK(charge(5));
    CHECK(since() == crossed);
    CHECK_FALSE(charge(1));
}

TEST_CASE_METHOD(Soft, "after the grace period it is the limit, until usage is below it") {
    CHECK(charge(6));
    store(ledger.soft_since(0, qp), now() - 61 * second);
    CHECK_FALSE(charge(1));
    uncharge(1);
    CHECK_FALSE(charge(1));  // 5 are above it still
    uncharge(2);
    CHECK(charge(1));
    const auto before = now();
    CHECK(charge(3));  // a new period begins
    CHECK(since() >= before);
}

TEST_CASE_METHOD(Soft, "a time that lies ahead begins a new period") {
    CHECK(charge(6));
    store(ledger.soft_since(0, qp), now() + 3600 * second);
    CHECK(charge(1));
    CHECK(since() <= now());
}

TEST_CASE_METHOD(Soft, "a soft limit that is not below the limit is none") {
    CHECK(limit_now(ledger, 0, qp, 5, {unlimited, 10, 60}) == 10);
    CHECK(limit_now(ledger, 0, qp, 5, {10, 10, 60}) == 10);
}
