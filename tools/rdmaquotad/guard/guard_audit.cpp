#include "tools/rdmaquotad/guard/guard_audit.hpp"

#include <algorithm>
#include <array>

#include "tools/common/guard/kernel_word.hpp"

namespace rdmaquota {
namespace {

constexpr int times_before_correction = 3;

// What the files of a row hold, and a mark of these files.
struct Held {
    std::array<u64, guard_resources> amounts{};
    u64 mark = 0;
};

using Sums = std::map<u32, Held>;

u64 mixed(u64 word) {  // so that sums of two are the same by chance only
    word = (word ^ word >> 32) * 0xd6e8feb86659fd93ULL;
    word = (word ^ word >> 32) * 0xd6e8feb86659fd93ULL;
    return word ^ word >> 32;
}

// Another one when something of the file was subtracted since, it was settled, or another has its place.
u64 mark_of(const guard_file& file) {
    const u64 returns = __atomic_load_n(&file.returns, __ATOMIC_ACQUIRE);
    return mixed(mixed(load_relaxed(file.id)) + (returns << 2 | (load_relaxed(file.waits) & (waits_known | waits_moved)) / waits_moved));
}

void add(Sums& sums, const guard_stamp& stamp, const u64* amounts, u64 mark) {
    for (u32 n = 0; n < std::min<u32>(stamp.count, guard_depth); ++n) {
        auto& sum = sums[stamp.rows[n]];
        sum.mark += mark;
        for (u32 place = 0; place < guard_resources; ++place) sum.amounts[place] += load_relaxed(amounts[place]);
    }
}

Sums held_by_row(const guard_file* files) {
    Sums sums;
    for (u32 i = 0; i < opener_slots; ++i) {
        const auto& file = files[i];
        if (load_relaxed(file.id) == 0) continue;
        const auto mark = mark_of(file);  // before what it holds
        if (const auto row = load_relaxed(file.enters_row)) sums[row];
        if (load_relaxed(file.waits) & waits_known) add(sums, file.stamp, file.held, mark);
        add(sums, load_relaxed(file.waits) & waits_moved ? file.stamp : file.waiting, file.waited, mark);
    }
    return sums;
}

// As the kernel's program leaves a row: `row_clears` is nobody's, and then it is free.
bool free_row(guard_row& row, u64 process) {
    if (!__atomic_compare_exchange_n(&row.process, &process, row_clears, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return false;
    row.since = row.pid = row.enforced = row.exceeded = 0;
    for (u32 resource = 0; resource < guard_resources; ++resource) row.used[resource] = row.refused[resource] = 0;
    for (auto& pace : row.pace) pace.paid = 0;
    __atomic_store_n(&row.process, 0, __ATOMIC_RELEASE);
    return true;
}

}  // namespace

// Whether it was the same at the last passes too; else it is remembered for the next one.
bool GuardAudit::stays(Place place, const Seen& seen) {
    const auto doubt = before_.find(place);
    const int times = doubt != before_.end() && doubt->second.seen == seen ? doubt->second.times + 1 : 1;
    if (times < times_before_correction) doubts_[place] = {seen, times};
    return times >= times_before_correction;
}

// True when it was corrected: by the difference, since it may go on changing.
bool GuardAudit::compare(u32 number, u32 resource, u64& used, u64 held, u64 mark) {
    const u64 now = __atomic_load_n(&used, __ATOMIC_RELAXED);
    if (now == held || !stays({number, resource}, {now, held, mark})) return false;
    __atomic_fetch_add(&used, held - now, __ATOMIC_RELAXED);
    return true;
}

std::size_t GuardAudit::pass(guard_row* rows, const guard_file* files) {
    static const Held nothing;
    const auto sums = held_by_row(files);
    before_ = std::exchange(doubts_, {});
    std::size_t corrected = 0;
    for (u32 number = 1; number < guard_rows; ++number) {
        auto& row = rows[number];
        const bool of_process = number < process_rows;
        const u64 process = __atomic_load_n(&row.process, __ATOMIC_RELAXED);
        if (of_process && process == 0) continue;
        const auto found = sums.find(number);
        const auto& held = found == sums.end() ? nothing : found->second;
        if (of_process && found == sums.end() && stays({number, guard_resources}, {process, 0, load_relaxed(row.entered)}))
            corrected += free_row(row, process);
        for (u32 resource = 0; resource < guard_resources; ++resource)
            corrected += compare(number, resource, row.used[resource], held.amounts[resource], held.mark);
    }
    return corrected;
}

}  // namespace rdmaquota
