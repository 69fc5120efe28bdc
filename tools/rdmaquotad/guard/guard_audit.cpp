#include "tools/rdmaquotad/guard/guard_audit.hpp"

#include <algorithm>
#include <array>

namespace rdmaquota {
namespace {

constexpr int times_before_correction = 3;

using Sums = std::map<u32, std::array<u64, guard_resources>>;

Sums held_by_row(const guard_file* files) {
    Sums sums;
    for (u32 i = 0; i < opener_slots; ++i) {
        const auto& file = files[i];
        if (file.id == 0) continue;
        const auto count = std::min<u32>(file.stamp.count, guard_depth);
        for (u32 n = 0; n < count; ++n) {
            auto& sum = sums[file.stamp.rows[n]];
            for (u32 place = 0; place < guard_resources; ++place) sum[place] += file.held[place];
        }
    }
    return sums;
}

}  // namespace

std::size_t GuardAudit::pass(const GuardProgram& program) {
    auto sums = held_by_row(program.files());
    auto before = std::exchange(doubts_, {});
    std::size_t corrected = 0;
    for (u32 number = 1; number < guard_rows; ++number) {
        auto& row = program.rows()[number];
        if (number < process_rows && row.process == 0) continue;
        const auto found = sums.find(number);
        for (u32 place = 0; place < guard_resources; ++place) {
            const u64 held = found == sums.end() ? 0 : found->second[place];
            u64 used = __atomic_load_n(&row.used[place], __ATOMIC_RELAXED);
            if (used == held) continue;
            const auto doubt = before.find({number, place});
            const bool same = doubt != before.end() && doubt->second.used == used && doubt->second.held == held;
            const int times = same ? doubt->second.times + 1 : 1;
            if (times < times_before_correction) {
                doubts_[{number, place}] = {used, held, times};
                continue;
            }
            corrected += __atomic_compare_exchange_n(&row.used[place], &used, held, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
        }
    }
    return corrected;
}

}  // namespace rdmaquota
