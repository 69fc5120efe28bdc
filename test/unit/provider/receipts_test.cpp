#include <catch2/catch.hpp>

#include <cstdint>
#include <fstream>
#include <memory>
#include <new>
#include <random>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "provider/charging/receipts.hpp"

using namespace rdmaquota;
using namespace rdmaquota::provider;

namespace {

const void* object(std::size_t i) { return reinterpret_cast<const void*>(0x10000 + 16 * i); }

struct Filing {
    Receipts receipts;
    void file(std::size_t i, std::uint64_t size) {
        if (!receipts.reserve()) throw std::bad_alloc();
        receipts.file({object(i), size, Kind::mr, 0, 0});
    }
    std::size_t left() {
        std::size_t count = 0;
        receipts.drain([&count](const Receipt&) { ++count; });
        return count;
    }
};

// How many words of the heap, where leak checkers look for pointers, are `object`'s address.
std::size_t count_in_heap(const void* object) {
    std::uintptr_t begin = 0, end = 0;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        char dash = 0;
        if (line.find("[heap]") != std::string::npos) std::istringstream(line) >> std::hex >> begin >> dash >> end;
    }
    std::size_t count = 0;
    for (; begin < end; begin += sizeof(void*)) {
        const void* word = *reinterpret_cast<const void* const volatile*>(begin);
        count += word == object;
    }
    return count;
}

}  // namespace

TEST_CASE("the address of an object that is charged is not in the heap, so that leak checkers report the object") {
    const auto filing = std::make_unique<Filing>();
    const void* const leaked = object(0x5a3c96000);
    filing->file(0x5a3c96000, 1);
    const auto in_receipts = count_in_heap(leaked);
    const auto reachable = std::make_unique<const void* volatile>(leaked);
    if (count_in_heap(leaked) == 0) return;  // sanitizers have a heap of their own
    CHECK(in_receipts == 0);
    CHECK(filing->receipts.take(leaked));
}

TEST_CASE_METHOD(Filing, "a receipt is taken once, by its own object") {
    file(1, 5);
    CHECK_FALSE(receipts.take(object(2)));
    const auto taken = receipts.take(object(1));
    REQUIRE(taken);
    CHECK(taken.size == 5);
    CHECK(taken.kind == Kind::mr);
    CHECK_FALSE(receipts.take(object(1)));
    CHECK(receipts.empty());
}

TEST_CASE_METHOD(Filing, "100,000 receipts are all found again") {
    for (std::size_t i = 0; i < 100'000; ++i) file(i, i + 1);
    std::size_t right = 0;
    for (std::size_t i = 0; i < 100'000; ++i) right += receipts.take(object(i)).size == i + 1;
    CHECK(right == 100'000);
    CHECK(receipts.empty());
}

TEST_CASE_METHOD(Filing, "receipts are found whichever of their neighbours were taken before") {
    std::mt19937 random(4711);
    std::vector<std::size_t> filed, taken;
    std::size_t wrong = 0;
    for (std::size_t step = 0; step < 200'000; ++step) {
        if (filed.empty() || (filed.size() < 24 && random() % 2 == 0)) {
            filed.push_back(random() % 4096 * 64 + step % 64);
            file(filed.back(), filed.back());
            continue;
        }
        std::swap(filed[random() % filed.size()], filed.back());
        const auto receipt = receipts.take(object(filed.back()));
        wrong += !receipt || receipt.size != filed.back();
        receipts.release();
        filed.pop_back();
    }
    CHECK(wrong == 0);
    CHECK(left() == filed.size());
}

TEST_CASE_METHOD(Filing, "threads file and take at the same time") {
    std::vector<std::thread> threads;
    std::atomic<std::size_t> missing{0};
    for (std::size_t t = 0; t < 4; ++t)
        threads.emplace_back([&, t] {
            for (std::size_t i = 0; i < 5'000; ++i) {
                file(t * 10'000 + i, 1);
                if (i % 2 == 0) continue;
                missing += !receipts.take(object(t * 10'000 + i));
                receipts.release();
            }
        });
    for (auto& thread : threads) thread.join();
    CHECK(missing == 0);
    CHECK(left() == 4 * 2'500);
    CHECK(receipts.empty());
}

TEST_CASE("each kind of object costs what its size says") {
    CHECK(amounts_of(Kind::nothing, 7).count == 0);
    const auto qp = amounts_of(Kind::qp, requests(16, 0));
    CHECK(qp.count == 3);
    CHECK(qp.of(Resource::qp) == 1);
    CHECK(qp.of(Resource::hca_object) == 1);
    CHECK(qp.of(Resource::send_wr) == 16);
    CHECK(amounts_of(Kind::qp, requests(1, 4'000'000'000)).of(Resource::recv_wr) == 4'000'000'000);
    CHECK(amounts_of(Kind::mr, 0).of(Resource::mr_bytes) == 0);
    CHECK(amounts_of(Kind::mr, UINT64_MAX).of(Resource::mr_bytes) == largest_charge);
    CHECK(amounts_of(Kind::umem, 4096).of(Resource::mr) == 0);
    CHECK(amounts_of(Kind::handle, 0).of(Resource::hca_object) == 0);
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
