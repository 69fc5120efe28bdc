// How much of each resource: what the oracle expects, independently of what the provider charges.
#pragma once

#include <array>
#include <cstdint>
#include <random>

#include "policy/resource.hpp"

namespace oracle {

using rdmaquota::index;
using rdmaquota::Resource;
using rdmaquota::resource_count;

struct Tally {
    std::array<std::int64_t, resource_count> amount{};

    std::int64_t of(Resource resource) const { return amount[index(resource)]; }
    void set(Resource resource, std::int64_t n) { amount[index(resource)] = n; }
    Tally with(Resource resource, std::int64_t n = 1) const {
        Tally result = *this;
        result.amount[index(resource)] += n;
        return result;
    }
    void add(const Tally& other, std::int64_t times = 1) {
        for (std::size_t i = 0; i < resource_count; ++i) amount[i] += times * other.amount[i];
    }
};

// The same numbers for the same seed with every C++ library.
class Random {
public:
    explicit Random(std::uint64_t seed) : engine_(seed) {}
    std::size_t below(std::size_t n) { return static_cast<std::size_t>(engine_() % n); }
    bool one_in(std::size_t n) { return below(n) == 0; }
    template <class T, std::size_t N>
    T any(const T (&values)[N]) {
        return values[below(N)];
    }

private:
    std::mt19937_64 engine_;
};

}  // namespace oracle
