// What kernel and ledger had of a process in each of the last looks. The two are not read at one instant, so that now
// the one and now the other seems to have more of a busy process. Therefore the least of one side counts, against the
// most of the other.
//
// One thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "policy/resource.hpp"

namespace rdmaquota {

// By how much `a` is more than `b`.
constexpr std::uint64_t more(std::uint64_t a, std::uint64_t b) { return a > b ? a - b : 0; }

class SampleWindow {
public:
    using Clock = std::chrono::steady_clock;
    static constexpr std::chrono::seconds lately{3};

    struct Amounts {
        std::uint64_t least_kernel, most_kernel, ledger;
    };
    void begin(Clock::time_point now, bool same);  // `same`: all of it is as at the last look
    void set(Resource resource, const Amounts& amounts);
    void confirm();  // this look needs no others beside it
    std::uint64_t bypass(Resource resource) const;  // how much more the kernel had all the while
    std::uint64_t leak(Resource resource) const;    // and the ledger
    // Whether nothing changed in all the looks that decide, so that all resources are as they will stay.
    bool bypass_at_rest() const { return same_ + 1 >= for_bypass; }
    bool leak_at_rest() const { return same_ + 1 >= for_leak; }

private:
    static constexpr std::size_t for_bypass = 3, for_leak = 6;
    struct Most {
        std::uint64_t kernel = 0, ledger = 0;
    };
    using Row = std::array<Amounts, resource_count>;
    std::uint64_t least(Resource resource, std::size_t looks, std::uint64_t Amounts::* side) const;

    std::array<Row, for_leak> looks_{};
    std::array<std::array<Most, resource_count>, 2> most_{};  // since `began_`, and in as long a time before
    Clock::time_point began_{};
    std::size_t count_ = 0, same_ = 0;  // looks; those that changed nothing, in a row
};

}  // namespace rdmaquota
