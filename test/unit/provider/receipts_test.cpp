#include <catch2/catch.hpp>

#include <thread>
#include <vector>

#include "provider/charging/receipts.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

std::unique_ptr<Receipt> receipt(std::uint64_t amount) {
    auto result = std::make_unique<Receipt>();
    result->amounts.add(Resource::mr_bytes, amount);
    return result;
}

const void* object(std::size_t i) { return reinterpret_cast<const void*>(0x10000 + 16 * i); }

}  // namespace

TEST_CASE("a receipt is taken once, by its own object") {
    Receipts receipts;
    receipts.file(receipt(5), object(1));
    CHECK_FALSE(receipts.take(object(2)));
    const auto taken = receipts.take(object(1));
    REQUIRE(taken);
    CHECK(taken->amounts.of(Resource::mr_bytes) == 5);
    CHECK_FALSE(receipts.take(object(1)));
    CHECK_FALSE(receipts.take_any());
}

TEST_CASE("100,000 receipts are all found again") {
    Receipts receipts;
    for (std::size_t i = 0; i < 100'000; ++i) receipts.file(receipt(i + 1), object(i));
    std::size_t right = 0;
    for (std::size_t i = 0; i < 100'000; ++i) {
        const auto taken = receipts.take(object(i));
        right += taken && taken->amounts.of(Resource::mr_bytes) == i + 1;
    }
    CHECK(right == 100'000);
    CHECK_FALSE(receipts.take_any());
}

TEST_CASE("a receipt that is used again is blank") {
    Receipts receipts;
    auto first = receipt(5);
    first->charged = 1;
    first->port = 2;
    receipts.discard(std::move(first));
    receipts.discard(receipt(6));  // one is enough to keep
    for (int i = 0; i < 2; ++i) {
        const auto next = receipts.blank();
        REQUIRE(next);
        CHECK(next->amounts.count == 0);
        CHECK(next->charged == 0);
        CHECK(next->port == 0);
    }
}

TEST_CASE("threads file and take at the same time") {
    Receipts receipts;
    std::vector<std::thread> threads;
    std::atomic<std::size_t> missing{0};
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = 0; i < 5'000; ++i) {
                receipts.file(receipt(1), object(t * 10'000 + i));
                if (i % 2 && !receipts.take(object(t * 10'000 + i))) ++missing;
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(missing == 0);
    std::size_t left = 0;
    while (receipts.take_any()) ++left;
    CHECK(left == 4 * 2'500);
}

TEST_CASE("amounts are set and read by resource") {
    Amounts amounts;
    amounts.add(Resource::qp, 1).add(Resource::send_wr, 0).add(Resource::mr_bytes, UINT64_MAX);
    CHECK(amounts.count == 2);
    CHECK(amounts.of(Resource::mr_bytes) == largest_charge);
    amounts.set(Resource::cqe, 9);
    amounts.set(Resource::qp, 3);
    CHECK(amounts.of(Resource::cqe) == 9);
    CHECK(amounts.of(Resource::qp) == 3);
    CHECK(amounts.count == 3);
}
