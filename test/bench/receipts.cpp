// receipts [--runs N] [--pairs N]: what a receipt costs a process with 1, 1,000 and 100,000 live objects: filing
// and taking out one, and the bytes of heap for each.
#include <malloc.h>

#include <memory>

#include "provider/charging/receipts.hpp"
#include "test/bench/measure.hpp"

namespace {

using namespace rdmaquota::bench;
using rdmaquota::provider::Receipts;

// Objects lie where malloc puts them.
using Objects = std::vector<std::unique_ptr<char[]>>;

Objects make_objects(std::size_t count) {
    constexpr std::size_t size_of_an_mr = 64;
    Objects objects(count);
    for (auto& object : objects) object.reset(new char[size_of_an_mr]);
    return objects;
}

void file(Receipts& receipts, const void* object) {
    if (receipts.reserve()) receipts.file({object, 1, rdmaquota::provider::Kind::mr, 1, 0});
}

double bytes_each(Receipts& receipts, const Objects& objects) {
    const auto before = mallinfo2().uordblks;
    for (const auto& object : objects) file(receipts, object.get());
    return static_cast<double>(mallinfo2().uordblks - before) / static_cast<double>(objects.size());
}

// Of objects that are far apart, so that none is in the processor's nearest cache by chance.
double ns_per_pair(Receipts& receipts, const Objects& objects, unsigned pairs) {
    std::size_t at = 0;
    const auto start = now_ns();
    for (unsigned i = 0; i < pairs; ++i) {
        at = (at + 7919) % objects.size();
        receipts.take(objects[at].get());
        receipts.release();
        file(receipts, objects[at].get());
    }
    return elapsed_ns(start) / pairs;
}

}  // namespace

int main(int argc, char** argv) {
    const auto runs = number_option(argc, argv, "--runs", 11);
    const auto pairs = number_option(argc, argv, "--pairs", 200'000);
    for (const std::size_t live : {1UL, 1'000UL, 100'000UL}) {
        const auto objects = make_objects(live);
        Receipts receipts;
        print("receipt_bytes." + std::to_string(live), bytes_each(receipts, objects));
        std::vector<double> ns;
        for (unsigned i = 0; i < runs; ++i) ns.push_back(ns_per_pair(receipts, objects, pairs));
        print("receipt_ns." + std::to_string(live), ns);
    }
}
